import Hiredis
import RedisDC
import RedisDCTesting
import TestSupport
import Testing

@testable import RedisDCTestSupport

extension EngineTests.FailureTests {
    @Test("operations succeed after SCRIPT FLUSH")
    func scriptFlush() async throws {
        try await withCoordinators { _, one, _, redis in
            let mutex = try one.mutex("m")
            for _ in 0..<50 {
                _ = try await redis.send("SCRIPT", "FLUSH")
                try await mutex.withLock { _ in _ = try await redis.send("SCRIPT", "FLUSH") }
            }
        }
    }

    @Test("at maxmemory requests are refused, and leases are kept and released")
    func maxMemory() async throws {
        try await withCoordinators(configuration: mediumTTL) { _, one, two, redis in
            let lease = try await one.mutex("m").lock()
            let waiting = Task { try await two.mutex("m").lock(timeout: .seconds(30)) }
            try await until("the waiter is queued") { try await one.inspect("m")?.waiterCount == 1 }
            _ = try await redis.send("CONFIG", "SET", "maxmemory", "1")
            #expect(await errorOf { _ = try await one.mutex("n").tryLock() }?.code == .outOfMemory)
            try await untilHeartbeats(2, redis)
            #expect(lease.isHeld)
            try await lease.release()
            let successor = try await waiting.value
            #expect(successor.isHeld)
            try await successor.release()
            _ = try await redis.send("CONFIG", "SET", "maxmemory", "0")
            let audit = try await Audit(redis)
            audit.check()
            #expect(audit.claims.isEmpty)
        }
    }

    @Test(
        "a server that refuses writes for lack of replicas ends leases after the TTL, and recovers with the replica",
        .scriptsNeedReplicas())
    func noReplicas() async throws {
        try await withReplicatedServers { servers in
            try await withTestClient(url: servers.server.url) { redis in
                try await withCoordinator(redis: redis, configuration: shortTTL) { coordinator in
                    let lease = try await coordinator.mutex("m").lock()
                    _ = try await redis.send("CONFIG", "SET", "min-replicas-max-lag", 1)
                    _ = try await redis.send("CONFIG", "SET", "min-replicas-to-write", 1)
                    try await servers.replica.pause()
                    try await until("the lease is lost") { !lease.isHeld }
                    #expect(await errorOf { try lease.check() }?.code == .lost)
                    await #expect(throws: RedisError.self) { try await redis.send("SET", "k", "v") }
                    let other = try coordinator.mutex("n")
                    let refused = await errorOf { _ = try await other.lock(timeout: .milliseconds(50)) }
                    #expect(refused?.code == .timedOut)
                    let waiting = Task { try await other.lock(timeout: .seconds(120)).release() }
                    try await servers.replica.resume()
                    try await waiting.value
                }
            }
        }
    }
}
