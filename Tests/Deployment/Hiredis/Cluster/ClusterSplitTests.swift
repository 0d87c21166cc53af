import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import HiredisTestSupport

extension ServerTests {
    @Suite("A master of a cluster that is separated from the other nodes", .serialized)
    struct ClusterSplitTests {
        @Test("clients on its side write until the node timeout and are refused then, and those of the others go on")
        func split() async throws {
            // Long enough that the master still accepts the first write.
            let configuration = LocalCluster.Configuration(nodeTimeout: .seconds(8), isSplittable: true)
            try await withClusterClient(configuration) { cluster, other in
                let old = try await cluster.master(ofKey: "foo")
                let replica = try await cluster.replicas(of: old)[0]
                var client = try cluster.clientConfiguration(onSideOf: old)
                client.commandTimeout = patience
                try await withRedisClient(client) { isolated in
                    // Both reach all masters before.
                    for redis in [isolated, other] {
                        for key in spreadKeys { _ = try await redis.send("SET", .string(key), "before") }
                    }
                    try await cluster.separate(old)
                    #expect(try await isolated.send("SET", "foo", "lost").string == "OK")
                    try await until("the master refuses writes") {
                        try await directly(old) { direct in
                            await redisError { _ = try await direct.send("SET", "foo", "x") }?.code == .serverNotReady
                        }
                    }
                    // The client tries again until its time is up. If that is while an attempt is under way, it may have run.
                    try await until("the client knows that its write was refused") {
                        let refused = await redisError {
                            _ = try await isolated.send(RedisCommand("SET", "foo", "x"), timeout: .seconds(1))
                        }
                        #expect(refused?.isTransient == true)
                        return refused?.mayHaveRun == false
                    }
                    try await cluster.waitUntilPromoted(replica)
                    try await until("the other side has the new master") {
                        await redisError { _ = try await other.send("SET", "foo", "kept") } == nil
                    }
                    let waiting = Task { try await isolated.send("GET", "foo") }
                    try await cluster.reunite(old)
                    try await cluster.waitUntilHealthy()
                    #expect(try await cluster.replicas(of: replica).contains { $0 === old })
                    #expect(try await waiting.value.string == "kept")
                    for key in spreadKeys { _ = try await isolated.send("SET", .string(key), "after") }
                }
            }
        }
    }
}
