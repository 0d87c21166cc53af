// A network that separates the master, with one process, from its replicas, the sentinels and another process.
import Hiredis
import RedisDC
import RedisDCTesting
import TestSupport
import Testing

extension EngineTests {
    @Suite("A master that is separated from its replicas and the sentinels", .serialized, .timeLimit(.minutes(5)))
    struct SplitTests {
        @Test("a holder on its side stays a holder, another process gets the lock, and the fences tell them apart")
        func withoutLimit() async throws {
            try await withSplit([]) { sentinel, old, isolated, other in
                let held = try await isolated.mutex("m").lock()
                try await separate(old, sentinel)
                let next = try await other.mutex("m").lock(timeout: .seconds(120))
                #expect(held.isHeld && next.isHeld)
                #expect(next.fence > held.fence)
                try await sentinel.reunite(old)
                try await sentinel.waitUntilHealthy()
                try await until("the holder on the side of the old master is notified") { !held.isHeld }
                #expect(next.isHeld)
                try await next.release()
            }
        }

        @Test(
            "with min-replicas-to-write a holder on its side is notified during the separation",
            .scriptsNeedReplicas())
        func withLimit() async throws {
            try await withSplit(["min-replicas-to-write 1", "min-replicas-max-lag 1"]) {
                sentinel, old, isolated, other in
                let held = try await isolated.mutex("m").lock()
                try await separate(old, sentinel)
                try await until("the holder is notified") { !held.isHeld }
                let next = try await other.mutex("m").lock(timeout: .seconds(120))
                #expect(next.isHeld && next.fence > held.fence)
                try await sentinel.reunite(old)
                try await sentinel.waitUntilHealthy()
                #expect(next.isHeld)
                try await next.release()
            }
        }

        /// Separates the master once its replicas have all of its data.
        private func separate(_ old: LocalRedis, _ sentinel: LocalSentinel) async throws {
            try await withTestClient(url: old.url) { redis in
                // WAIT is about the writes of its connection, and so about all that came before them. A published message
                // is replicated like a write.
                try await until("the replicas have everything") {
                    try await redis.pipeline([["PUBLISH", "nobody", ""], ["WAIT", 2, 1000]]).last?.integer == 2
                }
            }
            try await sentinel.separate(old)
        }

        private func withSplit(
            _ settings: [String],
            _ body: (LocalSentinel, _ old: LocalRedis, Coordinator, Coordinator) async throws -> Void
        ) async throws {
            var configuration = CoordinatorConfiguration()
            // A machine that stands still for some seconds ends no session.
            configuration.ttl = .seconds(20)
            try await withLocalSentinel(.init(server: .init(extra: settings), isSplittable: true)) { sentinel in
                let old = try await sentinel.master()
                try await withTestClient(url: old.url) { first in
                    try await withTestClient(url: sentinel.url) { second in
                        try await withCoordinator(redis: first, configuration: configuration) { isolated in
                            try await withCoordinator(redis: second, configuration: configuration) { other in
                                try await body(sentinel, old, isolated, other)
                            }
                        }
                    }
                }
            }
        }
    }
}
