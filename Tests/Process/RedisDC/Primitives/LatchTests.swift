import Hiredis
import RedisDC
import RedisDCTesting
import TestSupport
import Testing

@testable import RedisDCTestSupport

extension PrimitiveTests {
    @Suite("Latch", .serialized)
    struct LatchTests {
        @Test("the death of a participant counts down, or breaks the latch", arguments: [false, true])
        func death(breaks: Bool) async throws {
            try await withNodes { node, server, redis in
                let victim = try Child(
                    "redisdc-worker", ["engine-part", server.url, "l", breaks ? "breaking-latch" : "latch", "2"])
                try await until("it takes part") { try await redis.send("LLEN", "log").integer == 1 }
                let latch = try node.latch("l", count: 2, death: breaks ? .breaks : .countsAsDown)
                let waiting = Task { await errorOf { try await latch.wait(timeout: .seconds(60)) } }
                try await latch.countDown()
                try await until("it waits") { try await node.inspect("l")?.waiterCount == 1 }
                try await victim.kill9()
                #expect(await waiting.value?.code == (breaks ? .broken : nil))
                #expect(await errorOf { try await latch.wait(timeout: .zero) }?.code == (breaks ? .broken : nil))
                if breaks { #expect(await errorOf { try await latch.countDown() }?.code == .broken) }
                #expect(try await latch.destroy())
                #expect(await errorOf { try await latch.wait(timeout: .zero) }?.code == .timedOut)
            }
        }
    }
}
