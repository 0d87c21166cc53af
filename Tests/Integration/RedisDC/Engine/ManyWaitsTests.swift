// Tens of thousands of waits of one process that begin or end at the same moment.
import Hiredis
import RedisDC
import RedisDCTesting
import Synchronization
import TestSupport
import Testing

@testable import RedisDCTestSupport

/// The number of tasks that have begun.
private final class Begun: Sendable {
    let count = Atomic<Int>(0)
}

extension EngineTests {
    @Suite("Many waits at once", .serialized, .timeLimit(.minutes(10)))
    struct ManyWaitsTests {
        /// Begins waits for a semaphore without permits, and returns when all tasks have begun theirs.
        private func wait(_ count: Int, for semaphore: Semaphore) async throws -> [Task<Void, any Error>] {
            let begun = Begun()
            let tasks = (0..<count).map { _ in
                Task {
                    begun.count.add(1, ordering: .relaxed)
                    try await semaphore.wait()
                }
            }
            try await until("all tasks have begun") { begun.count.load(ordering: .relaxed) == count }
            return tasks
        }

        @Test("8,000 waits of a process load their script once")
        func loads() async throws {
            try await withCoordinators { _, one, two, redis in
                let lease = try await one.mutex("m").lock()
                // Of a semaphore that exists, so that its waits need one script.
                try await two.semaphore("s", permits: 0).signal(1)
                try await one.semaphore("s", permits: 0).wait()
                _ = try await redis.send("SCRIPT", "FLUSH")
                let before = try await redis.calls(of: "script|load")
                let tasks = try await wait(8000, for: try one.semaphore("s", permits: 0))
                try await until("all waits are queued") { try await two.inspect("s")?.waiterCount == 8000 }
                // Beside that of the waits: a heartbeat, the confirmation of wake-ups, and the other coordinator's.
                #expect(try await redis.calls(of: "script|load") - before < 10)
                try await two.semaphore("s", permits: 0).signal(8000)
                for task in tasks { try await task.value }
                #expect(try await redis.calls(of: "script|load") - before < 20)
                try await lease.release()
            }
        }

        @Test("100,000 waits that are cancelled at once do not cost the session")
        func cancelled() async throws {
            var configuration = CoordinatorConfiguration()
            configuration.ttl = .seconds(60)
            try await withServer { _, redis, other in
                try await withCoordinator(redis: redis, configuration: configuration) { one in
                    let lease = try await one.mutex("m").lock()
                    _ = try await other.send("SCRIPT", "FLUSH")
                    let tasks = try await wait(100_000, for: try one.semaphore("s", permits: 0))
                    for task in tasks { task.cancel() }
                    for task in tasks { #expect(await errorOf { try await task.value }?.code == .cancelled) }
                    try await until("no wait is left") { try await one.inspect("s")?.waiterCount ?? 0 == 0 }
                    #expect(lease.isHeld)
                    try await lease.release()
                }
            }
        }
    }
}
