import Hiredis
import RedisDC
import RedisDCTesting
import TestSupport
import Testing

@testable import RedisDCTestSupport

extension PrimitiveTests {
    @Suite("Condition", .serialized)
    struct ConditionTests {
        @Test("a waiter that is killed with -9 loses no notification")
        func death() async throws {
            try await withNodes { node, server, redis in
                let mutex = try node.mutex("m")
                let condition = try mutex.condition("c")
                let victim = try Child("redisdc-worker", ["engine-part", server.url, "m", "condition"])
                try await until("it waits") { try await node.inspect("m#c")?.waiterCount == 1 }
                let waiting = Task {
                    try await mutex.withLock { lease in try await condition.wait(lease, timeout: .seconds(60)) }
                }
                try await until("both wait") { try await node.inspect("m#c")?.waiterCount == 2 }
                try await victim.kill9()
                let session = try await node.inspect("m#c")?.waiters.first?.session
                try await until("its session has ended") { try await !Audit(redis).sessions.contains(session!) }
                try await condition.notify()
                try await waiting.value
            }
        }
    }
}
