// Sessions whose TTLs differ: a dead one is freed by its own.
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import RedisDC
@testable import RedisDCTestSupport

/// A TTL whose heartbeats are so rare that no test waits for two of them.
private let rare: CoordinatorConfiguration = {
    var configuration = CoordinatorConfiguration()
    configuration.ttl = .seconds(3000)
    return configuration
}()

extension EngineTests.FailureTests {
    @Test("a waiter whose TTL is 50 minutes gets what a dead session with a TTL of 2 s held")
    func shortHolder() async throws {
        try await withServer { _, redis, other in
            try await withCoordinator(redis: redis, configuration: rare) { coordinator in
                // Its session and its first heartbeat are older than the other session.
                try await coordinator.mutex("other").withLock { _ in }
                let holder = try await ForeignNode(other, ttl: .seconds(2))
                #expect(try await holder.request("acquire", "m", ["mf", "1", "m"]).first != "lost")
                let waiting = Task { try await coordinator.mutex("m").lock(timeout: .seconds(60)) }
                try await until("it waits") { try await coordinator.inspect("m")?.waiterCount == 1 }
                // For as long as the holder lives, the waiter's process looks again.
                for _ in 0..<3 {
                    let before = try await watchers(other)
                    try await until("it has looked again") {
                        try await holder.heartbeat(ttl: .seconds(2))
                        return try await watchers(other) != before
                    }
                }
                try await waiting.value.release()
            }
        }
    }

    @Test("a session with a long TTL that begins while another one is dying gets what that held")
    func lateWaiter() async throws {
        try await withServer { _, redis, other in
            let holder = try await ForeignNode(other, ttl: .seconds(2))
            #expect(try await holder.request("acquire", "m", ["mf", "1", "m"]).first != "lost")
            try await withCoordinator(redis: redis, configuration: rare) { coordinator in
                try await coordinator.mutex("m").lock(timeout: .seconds(60)).release()
            }
        }
    }

    @Test("what 1,000 dead sessions with TTLs of 2 to 6 s held is freed by one whose TTL is 50 minutes")
    func mixed() async throws {
        let count = 1000
        try await withServer { _, redis, other in
            try await withCoordinator(redis: redis, configuration: rare) { coordinator in
                try await coordinator.mutex("other").withLock { _ in }
                for number in 0..<count {
                    let node = try await ForeignNode(other, ttl: .seconds(2 + number % 5))
                    _ = try await node.request("acquire", "m\(number)", ["mf", "1", "m"])
                }
                try await until("all is free", within: .seconds(60)) {
                    let audit = try await Audit(other)
                    return audit.claims.isEmpty && audit.sessions.count == 1
                }
                try await Audit(other).check()
            }
        }
    }
}

/// The times at which watchers have promised to look, without those of the short session itself.
private func watchers(_ redis: RedisClient) async throws -> [Substring] {
    let list = try await redis.send("HGET", "rdc:{default:0}:book", "watchers").string ?? ""
    return list.split(separator: " ").filter { $0.hasSuffix(":3000000000") }
}
