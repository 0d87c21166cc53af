// Workers of one process that begin, stop, are cancelled and lose replies while jobs arrive, for ThreadSanitizer.
import CoordinationBase
import Foundation
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import QueueListen
@testable import QueueListenTestSupport

extension QueueListenTests {
    @Suite("Workers that begin and stop while jobs arrive", .serialized)
    struct WorkRaceTests {
        private struct Failure: Error {}

        private static var settings: WorkConfiguration {
            var configuration = WorkConfiguration()
            configuration.concurrency = 4
            configuration.ttl = .seconds(2)
            configuration.attempts = 1000
            configuration.pause = .milliseconds(1)...(.milliseconds(20))
            configuration.grace = .milliseconds(20)
            return configuration
        }

        @Test("every job is run")
        func stops() async throws {
            try await withServer { _, redis, other in
                let lossy = InterposedRedis.losing(every: 7, of: redis, withKeysThatContain: ":work:")
                var configuration = PostOfficeConfiguration()
                configuration.callTimeout = patience
                let (done, isOver) = (Locked<Set<String>>([]), Locked(false))
                try await withPostOffice(redis: lossy, configuration: configuration) { [configuration] office in
                    let sender = try PostOffice(redis: other, configuration: configuration)
                    try await withThrowingTaskGroup(of: Void.self) { group in
                        for _ in 0..<4 {
                            group.addTask {
                                while !isOver.withLock({ $0 }) {
                                    let work = Task {
                                        try await office.mailbox("jobs").work(Self.settings) { job in
                                            try await Task.sleep(for: .milliseconds(Int.random(in: 0...30)))
                                            if Int.random(in: 0..<5) == 0 { throw Failure() }
                                            done.withLock { _ = $0.insert(job.message.text) }
                                        }
                                    }
                                    // Most lives are short. Those that are not let jobs end also on a slow machine.
                                    let life = Int.random(in: 0...200) * (Int.random(in: 0..<8) == 0 ? 20 : 1)
                                    try await Task.sleep(for: .milliseconds(life))
                                    work.cancel()
                                    try await work.value
                                }
                            }
                        }
                        for number in 0..<300 {
                            var message = Message(text: "job \(number)")
                            message.orderKey = number.isMultiple(of: 3) ? "key \(number % 4)" : nil
                            try await sender.send(message, to: "jobs")
                        }
                        try await until("all are done") { done.withLock { $0.count } == 300 }
                        isOver.withLock { $0 = true }
                        try await group.waitForAll()
                    }
                }
            }
        }
    }
}
