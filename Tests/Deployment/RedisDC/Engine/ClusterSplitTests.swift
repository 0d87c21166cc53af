// A network that separates one master of a cluster, with one process, from the other nodes and another process.
import Hiredis
import RedisDC
import RedisDCTesting
import TestSupport
import Testing

extension EngineTests {
    @Suite("A master of a cluster that is separated from the other nodes", .serialized, .timeLimit(.minutes(5)))
    struct ClusterSplitTests {
        @Test("a holder on its side is notified during the separation, and goes on with the others afterwards")
        func holder() async throws {
            try await withSplit { cluster, old, replica, isolated, other in
                let held = try await isolated.mutex("m").lock()
                try await separate(old, cluster)
                let next = try await other.mutex("m").lock(timeout: .seconds(120))
                #expect(next.fence > held.fence)
                try await until("the holder is notified") { !held.isHeld }
                #expect(next.isHeld)
                let waiting = Task { try await isolated.mutex("m").lock(timeout: .seconds(120)) }
                try await cluster.reunite(old)
                try await cluster.waitUntilHealthy()
                #expect(next.isHeld)
                try await next.release()
                let last = try await waiting.value
                #expect(last.isHeld && last.fence > next.fence)
                try await last.release()
            }
        }

        @Test("the holder of a lock that only the separated master knows is notified, and the next fence is higher")
        func grantedBySeparated() async throws {
            try await withSplit { cluster, old, replica, isolated, other in
                try await separate(old, cluster)
                let held = try await isolated.mutex("m").lock(timeout: .seconds(120))
                try await cluster.waitUntilPromoted(replica)
                let next = try await other.mutex("m").lock(timeout: .seconds(120))
                #expect(next.isHeld && next.fence > held.fence)
                try await until("the holder is notified") { !held.isHeld }
                try await cluster.reunite(old)
                try await cluster.waitUntilHealthy()
                #expect(next.isHeld)
                try await next.release()
                let last = try await isolated.mutex("m").lock(timeout: .seconds(120))
                #expect(last.fence > next.fence)
                try await last.release()
            }
        }

        /// Separates the master once its replica has all of its data.
        private func separate(_ old: LocalRedis, _ cluster: LocalCluster) async throws {
            try await withTestClient(url: old.url) { redis in
                // WAIT is about the writes of its connection, and so about all that came before them. A published
                // message is replicated like a write.
                try await until("the replica has everything") {
                    try await redis.pipeline([["PUBLISH", "nobody", ""], ["WAIT", 1, 1000]]).last?.integer == 1
                }
            }
            try await cluster.separate(old)
        }

        private func withSplit(
            _ body: (LocalCluster, _ old: LocalRedis, _ replica: LocalRedis, Coordinator, Coordinator) async throws ->
                Void
        ) async throws {
            var configuration = CoordinatorConfiguration()
            configuration.ttl = .seconds(6)
            // Long enough that the separated master still grants a lock.
            try await withLocalCluster(.init(nodeTimeout: .seconds(8), isSplittable: true)) { cluster in
                let old = try await cluster.master(ofKey: "rdc:{default:0}:")
                let replica = try await cluster.replicas(of: old)[0]
                try await withRedisClient(cluster.clientConfiguration(onSideOf: old)) { first in
                    try await withTestClient(url: cluster.url) { second in
                        try await withCoordinator(redis: first, configuration: configuration) { isolated in
                            try await withCoordinator(redis: second, configuration: configuration) { other in
                                // Both have a session.
                                for side in [isolated, other] { try await side.mutex("before").withLock { _ in } }
                                try await body(cluster, old, replica, isolated, other)
                            }
                        }
                    }
                }
            }
        }
    }
}
