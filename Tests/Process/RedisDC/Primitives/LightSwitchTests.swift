import Hiredis
import RedisDC
import RedisDCTesting
import TestRandom
import TestSupport
import Testing

@testable import RedisDCTestSupport

extension PrimitiveTests {
    @Suite("Light switch", .serialized)
    struct LightSwitchTests {
        @Test("a dead member has left: the last live one releases the mutex")
        func death() async throws {
            try await withNodes { node, server, redis in
                let victim = try Child(
                    "redisdc-worker", ["engine-part", server.url, "room", "light-switch", "readers"])
                try await until("it is in") { try await node.inspect("room")?.holderCount == 1 }
                let room = try node.mutex("room")
                let own = try await room.lightSwitch("readers").lock(timeout: .zero)
                try await victim.kill9()
                try await own.release()
                // Only its death admits others.
                let alone = try await room.lock(timeout: .seconds(60))
                try await until("its session goes") { try await Audit(redis).sessions.count == 1 }
                try await Audit(redis).check()
                try await alone.release()
            }
        }

        @Test("a dead waiter does not enter with its group")
        func deadWaiter() async throws {
            try await withNodes { node, server, redis in
                let room = try node.mutex("room")
                let held = try await room.lock()
                let victim = try Child(
                    "redisdc-worker", ["engine-part", server.url, "room", "light-switch", "readers"])
                try await until("it waits") { try await node.inspect("room")?.waiterCount == 1 }
                let own = Task { try await room.lightSwitch("readers").lock() }
                try await until("both wait") { try await node.inspect("room")?.waiterCount == 2 }
                try await victim.kill9()
                try await until("the dead one is swept") { try await Audit(redis).sessions.count == 1 }
                try await Audit(redis).check()
                try await held.release()
                try await own.value.release()
                try await Audit(redis).check()
            }
        }
    }
}
