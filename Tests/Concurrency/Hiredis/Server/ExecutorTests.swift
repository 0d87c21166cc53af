import Hiredis
import RedisDCTesting
import Synchronization
import TestSupport
import Testing

extension ServerTests {
    @Suite("The client's executor", .serialized)
    struct ExecutorTests {
        private final class Flag: Sendable { let isSet = Atomic(false) }

        @Test("tasks that wake each other all the time do not starve the sockets", .timeLimit(.minutes(10)))
        func busy() async throws {
            try await withLocalRedis { server in
                try await withTestClient(url: server.url) { redis in
                    let stop = Flag()
                    try await withThrowingTaskGroup(of: Void.self) { group in
                        for _ in 0..<3 {
                            group.addTask(executorPreference: redis.executor) {
                                while !stop.isSet.load(ordering: .acquiring) { await Task.yield() }
                            }
                        }
                        group.addTask {
                            for _ in 0..<100 { _ = try await redis.send("PING") }
                            stop.isSet.store(true, ordering: .releasing)
                        }
                        try await group.waitForAll()
                    }
                }
            }
        }
    }
}
