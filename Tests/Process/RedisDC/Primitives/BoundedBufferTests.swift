import Hiredis
import RedisDC
import RedisDCTesting
import TestRandom
import TestSupport
import Testing

@testable import RedisDCTestSupport

extension PrimitiveTests {
    @Suite("Bounded buffer", .serialized)
    struct BoundedBufferTests {
        @Test("a killed consumer's item comes back, and a killed producer's item is not put")
        func death() async throws {
            try await withNodes { node, server, redis in
                let buffer = try node.boundedBuffer("b", of: String.self, capacity: 2)
                try await buffer.put("first")
                let victim = try Child("redisdc-worker", ["engine-part", server.url, "b", "consumer"])
                try await until("it has the item") { try await redis.send("LLEN", "log").integer == 1 }
                try await victim.kill9()
                // A producer that leases a place and dies before it puts an item there.
                let dying = try await ForeignNode(redis)
                #expect(try await dying.request("acquire", "b", ["kf", "2", "l"]) != ["0"])
                try await dying.expire()
                try await buffer.put("second", timeout: .seconds(60))
                // The order of the items depends on the order in which the two sessions expire.
                let items = [
                    try await buffer.take(timeout: .seconds(60)), try await buffer.take(timeout: .seconds(60)),
                ]
                #expect(Set(items) == ["first", "second"])
                let audit = try await Audit(redis)
                audit.check()
                #expect(audit.resources["b"]?.free == 2)
            }
        }
    }
}
