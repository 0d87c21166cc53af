// A process that is stopped at the worst moment: it has seen that it holds the lock, and has not written yet.
import Foundation
import Hiredis
import RedisDC
import TestSupport
import Testing

@testable import RedisDCTestSupport
@testable import RedisDCTesting

extension PrimitiveTests {
    @Suite("Guarded keys in several processes", .serialized)
    struct GuardedKeysTests {
        /// With a plain write, what the lock protects is lost: no lock with a lease can prevent that.
        @Test(
            "a holder stopped beyond its TTL between its check and its write writes in vain, and only then",
            arguments: ["guarded", "plain"])
        func stopped(way: String) async throws {
            try await withServer { server, redis, _ in
                try await withCoordinator(redis: redis, configuration: mediumTTL) { coordinator in
                    let holder = try Child("redisdc-worker", ["engine-guard", server.url, "m", way])
                    try await until("the worker has stopped") { ProcessState.isStopped(holder.processID) }
                    let lease = try await coordinator.mutex("m").lock(timeout: patience)
                    try await lease.guarded(redis).set("k", to: "next")
                    kill(holder.processID, SIGCONT)
                    let result = try await holder.result()
                    if way == "guarded" {
                        #expect(result == "lost")
                        #expect(try await lease.guarded(redis).get("k").string == "next")
                    } else {
                        #expect(result == "written, and the lease is lost")
                        #expect(try await redis.send("GET", "k").string == "late")
                    }
                    try await lease.release()
                }
            }
        }
    }
}
