import Hiredis
import RedisDC
import RedisDCTesting
import TestSupport
import Testing

@testable import RedisDCTestSupport

extension PrimitiveTests {
    @Suite("Read-write lock", .serialized)
    struct ReadWriteLockTests {
        @Test("what a killed reader or writer held is free", arguments: [false, true])
        func death(writes: Bool) async throws {
            try await withNodes { node, server, _ in
                let victim = try Child("redisdc-worker", ["engine-part", server.url, "l", writes ? "write" : "read"])
                try await until("it holds") { try await node.inspect("l")?.holderCount == 1 }
                let lock = try node.readWriteLock("l")
                #expect(await errorOf { _ = try await lock.writeLock(timeout: .zero) }?.code == .timedOut)
                try await victim.kill9()
                try await lock.writeLock(timeout: .seconds(60)).release()
            }
        }
    }
}
