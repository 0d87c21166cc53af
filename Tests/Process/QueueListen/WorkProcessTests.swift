// Workers in processes that are killed, or stopped for longer than their time to live, while Redis restarts.
import Foundation
import Hiredis
import RedisDCTesting
import TestRandom
import TestSupport
import Testing

@testable import QueueListen
@testable import QueueListenTestSupport

extension QueueListenTests {
    @Suite("Workers in several processes", .serialized)
    struct WorkProcessTests {
        private static let keys = (0..<8).map { "key\($0)" }
        private static let jobsPerKey = 150

        @Test(
            "whatever is killed or stopped, no job is lost, each key keeps its order, and the fence tells who is late")
        func killed() async throws {
            let seed = testSeed()
            var generator = SplitMix(seed: seed)
            try await withLocalRedis { notebook in
                try await withServer(.init(persistence: .appendOnly(fsync: .always))) { server, redis, _ in
                    try await withTestClient(url: notebook.url) { notes in
                        func startWorker() throws -> Child {
                            try Child("redisdc-worker", ["mail-work", server.url, notebook.url, "1"])
                        }
                        func runs() async throws -> Int { try await notes.send("GET", "runs").integer ?? 0 }
                        var configuration = PostOfficeConfiguration()
                        configuration.callTimeout = patience
                        try await withPostOffice(redis: redis, configuration: configuration) { office in
                            var workers = try (0..<4).map { _ in try startWorker() }
                            let faults = 20
                            for fault in 0..<faults {
                                let share = Self.jobsPerKey / faults
                                let last = fault == faults - 1 ? Self.jobsPerKey : (fault + 1) * share
                                // Some of the new jobs may be run before the call that sends them returns.
                                let before = try await runs()
                                try await Self.send(fault * share..<last, office)
                                try await until("fault \(fault): jobs are run (seed \(seed))") {
                                    try await runs() > before + 10
                                }
                                tally(.fault)
                                let victim = Int.random(in: 0..<4, using: &generator)
                                switch fault % 4 {
                                case 0, 1:
                                    try await workers[victim].kill9()
                                    workers[victim] = try startWorker()
                                case 2:
                                    // Its jobs go to others, and it goes on afterwards.
                                    try await until("all have begun (seed \(seed))") {
                                        try await Self.workers(redis) == 4
                                    }
                                    kill(workers[victim].processID, SIGSTOP)
                                    try await until("it is found dead (seed \(seed))") {
                                        try await Self.workers(redis) == 3
                                    }
                                    kill(workers[victim].processID, SIGCONT)
                                default:
                                    await server.kill()
                                    try await server.restart()
                                }
                            }
                            try await Self.check(office, notes, seed)
                            for worker in workers { try await worker.kill9() }
                        }
                    }
                }
            }
        }

        /// Sends jobs of each key, numbered. All at once, so that most of them are there when the fault comes.
        private static func send(_ numbers: Range<Int>, _ office: PostOffice) async throws {
            let messages = numbers.flatMap { number in
                keys.map { key in
                    var message = Message(text: "\(key) \(number)")
                    message.orderKey = key
                    return message
                }
            }
            try await office.send(messages, to: ["jobs"], id: "jobs \(numbers)")
        }

        /// The number of workers that nobody has found dead.
        private static func workers(_ redis: RedisClient) async throws -> Int {
            try await (redis.send("HGET", "ql:{default:0}:work:jobs", "p").bytes?.count ?? 0) / 24
        }

        private static func check(_ office: PostOffice, _ notes: RedisClient, _ seed: UInt64) async throws {
            let mailbox = try office.mailbox("jobs")
            let rejected = keys.count * jobsPerKey / 10
            try await until("all jobs are done or have failed (seed \(seed))") {
                let status = try await mailbox.workStatus()
                guard status.waiting == 0, status.running == 0, status.failed == rejected else { return false }
                return try await mailbox.count == 0
            }
            let failed = try await mailbox.jobs(.failed, limit: 1000)
            #expect(
                Set(failed.map(\.message.text)).count == rejected
                    && failed.allSatisfy { $0.message.text.hasSuffix("9") })
            let expected = (0..<jobsPerKey).filter { $0 % 10 != 9 }
            for key in keys {
                let done =
                    try await notes.send("LRANGE", .string("did \(key)"), 0, -1).array?.compactMap(\.integer) ?? []
                #expect(done == done.sorted(), "\(key), seed \(seed)")
                #expect(Array(Set(done)).sorted() == expected, "\(key), seed \(seed)")
            }
        }
    }
}
