import Hiredis
import RedisDC
import RedisDCTesting
import Synchronization
import TestSupport
import Testing

@testable import RedisDCTestSupport

@Suite("With a Redis that implements only the public protocol", .serialized, .timeLimit(.minutes(10)))
struct PlainRedisTests {
    @Test("a coordinator hands a mutex over, woken up by the channel")
    func mutex() async throws {
        try await withServer { _, redis, other in
            var configuration = CoordinatorConfiguration()
            // Without a wake-up a waiter would ask again after this time.
            configuration.pollInterval = .seconds(600)
            // This is no test of sessions that expire on a busy machine.
            configuration.ttl = .seconds(120)
            try await withCoordinator(redis: PlainRedis(redis), configuration: configuration) { plain in
                try await withCoordinator(redis: other, configuration: configuration) { direct in
                    let inside = Inside()
                    try await withThrowingTaskGroup(of: Void.self) { group in
                        for coordinator in [plain, direct, plain, direct] {
                            let mutex = try coordinator.mutex("orders")
                            group.addTask {
                                for _ in 0..<10 {
                                    try await mutex.withLock { _ in
                                        #expect(inside.enter() == 1)
                                        await Task.yield()
                                        inside.leave()
                                    }
                                }
                            }
                        }
                        try await group.waitForAll()
                    }
                }
            }
        }
    }

    @Test("a cancelled wait ends, and the coordinator stops")
    func cancellation() async throws {
        try await withServer { _, redis, _ in
            try await withCoordinator(redis: PlainRedis(redis)) { coordinator in
                let mutex = try coordinator.mutex("orders")
                try await mutex.withLock { _ in
                    let waiting = Task.detached { try await mutex.withLock { _ in } }
                    waiting.cancel()
                    #expect(await errorOf { try await waiting.value }?.code == .cancelled)
                }
            }
        }
    }
}

private final class Inside: Sendable {
    private let count = Atomic(0)

    func enter() -> Int { count.add(1, ordering: .relaxed).newValue }
    func leave() { count.subtract(1, ordering: .relaxed) }
}
