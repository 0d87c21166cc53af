import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import HiredisTestSupport

extension ServerTests {
    /// The servers are split into the master with one client on one side, and its replicas, the
    /// sentinels and another client on the other.
    @Suite("A master that is separated from its replicas and the sentinels", .serialized)
    struct SplitTests {
        @Test("writes of clients on its side are lost, and those of the others remain")
        func withoutLimit() async throws {
            try await withSplit([]) { sentinel, old, isolated, other in
                try await until("the replicas have the value") {
                    try await other.pipeline([["SET", "before", "kept"], ["WAIT", 2, 1000]]).last?.integer == 2
                }
                try await sentinel.separate(old)
                let new = try await sentinel.waitForMaster(otherThan: old)
                // Each side has a master that accepts writes.
                #expect(try await isolated.send("SET", "lost", "x").string == "OK")
                #expect(try await isolated.send("SET", "both", "old side").string == "OK")
                #expect(try await other.send("SET", "both", "new side").string == "OK")
                #expect(try await other.info("tcp_port") == "\(new.port)")
                try await sentinel.reunite(old)
                try await sentinel.waitUntilHealthy()
                try await until("the old master has the data of the new one") {
                    try await isolated.send("GET", "both").string == "new side"
                }
                #expect(try await isolated.send("GET", "lost").isNull)
                #expect(try await isolated.send("GET", "before").string == "kept")
                let refused = await redisError { _ = try await isolated.send("SET", "lost", "y") }
                #expect(refused?.code == .readOnly && refused?.mayHaveRun == false)
            }
        }

        @Test("with min-replicas-to-write it refuses writes, also of scripts", .scriptsNeedReplicas())
        func withLimit() async throws {
            try await withSplit(["min-replicas-to-write 1", "min-replicas-max-lag 1"]) {
                sentinel, old, isolated, other in
                let script = RedisScript("return redis.call('SET', KEYS[1], ARGV[1])")
                try await sentinel.separate(old)
                try await until("a command is refused") {
                    await redisError { _ = try await isolated.send("SET", "lost", "x") }?.code == .readOnly
                }
                let refused = await redisError {
                    _ = try await isolated.script(script, keys: ["both"], arguments: ["old side"])
                }
                #expect(refused?.code == .readOnly && refused?.mayHaveRun == false && refused?.isTransient == true)
                _ = try await sentinel.waitForMaster(otherThan: old)
                #expect(await redisError { _ = try await isolated.send("SET", "both", "old side") }?.code == .readOnly)
                try await until("the new master has a replica, and accepts writes") {
                    await redisError {
                        _ = try await other.script(script, keys: ["both"], arguments: ["new side"])
                    } == nil
                }
                #expect(try await isolated.send("GET", "both").isNull)
                try await sentinel.reunite(old)
                try await sentinel.waitUntilHealthy()
                try await until("the old master has the data of the new one") {
                    try await isolated.send("GET", "both").string == "new side"
                }
            }
        }

        private func withSplit(
            _ settings: [String],
            _ body: (LocalSentinel, _ old: LocalRedis, RedisClient, RedisClient) async throws -> Void
        ) async throws {
            try await withLocalSentinel(.init(server: .init(extra: settings), isSplittable: true)) { sentinel in
                let old = try await sentinel.master()
                try await withTestClient(url: old.url) { isolated in
                    try await withTestClient(url: sentinel.url) { other in
                        try await body(sentinel, old, isolated, other)
                    }
                }
            }
        }
    }
}
