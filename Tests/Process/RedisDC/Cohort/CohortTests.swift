import Foundation
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import RedisDC
@testable import RedisDCTestSupport

extension PrimitiveTests {
    @Suite("Cohort", .serialized)
    struct CohortTests {
        @Test(
            "when a process is killed, its mutex is free, and the fences of its turns stay behind",
            arguments: [
                "cohort-linger", "cohort-turn",
            ])
        func killed(_ part: String) async throws {
            try await withNodes { node, server, redis in
                let victim = try Child("redisdc-worker", ["engine-part", server.url, "m", part])
                try await until("it has had its turns") { try await redis.send("LLEN", "log").integer ?? 0 >= 200 }
                let waiting = Task { try await node.mutex("m", locality: .cohort()).lock(timeout: .seconds(60)) }
                if part == "cohort-turn" {
                    try await until("it waits") { try await node.inspect("m")?.waiterCount == 1 }
                }
                try await victim.kill9()
                let lease = try await waiting.value
                let fences = try await redis.send("LRANGE", "log", 0, -1).array?.compactMap {
                    $0.string.flatMap(UInt64.init)
                }
                #expect(lease.fence > fences!.max()!)
                try await lease.release()
                try await until("its session is over") { try await Audit(redis).sessions.count == 1 }
                try await until("it is free") { try await Audit(redis).claims.isEmpty }
                try await Audit(redis).check()
            }
        }
    }
}
