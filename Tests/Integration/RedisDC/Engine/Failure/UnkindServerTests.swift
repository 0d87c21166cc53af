// Servers that refuse commands, forget scripts or have corrupt or foreign keys.
import Hiredis
import RedisDC
import RedisDCTesting
import TestSupport
import Testing

@testable import RedisDCTestSupport

extension EngineTests.FailureTests {
    @Test("a key of the wrong type is named in the error and not changed")
    func wrongType() async throws {
        for key in ["book", "index", "sessions", "values"] {
            try await withServer { _, redis, other in
                let name = "rdc:{default:0}:\(key)"
                _ = try await other.send("SET", .string(name), "mine")
                try await withCoordinator(redis: redis, configuration: longTTL) { coordinator in
                    let error = await errorOf { try await coordinator.mutex("m").withLock { _ in } }
                    #expect(error?.code == .wrongType)
                    #expect(error?.message.contains(name) == true)
                }
                #expect(try await other.send("GET", .string(name)).string == "mine")
                #expect(try await other.send("DBSIZE").integer == 1)
            }
        }
    }

    @Test("corrupt records do not stop the heartbeats of other sessions")
    func corruptClaims() async throws {
        try await withCoordinators(configuration: mediumTTL) { _, one, _, redis in
            let lease = try await one.mutex("m").lock()
            let state: RedisArgument = "rdc:{default:0}:book"
            // A session that expired long ago and has 4 slots, and one whose record is corrupt.
            let number = { (value: Double) in withUnsafeBytes(of: value.bitPattern.littleEndian) { Array($0) } }
            _ = try await redis.send("HSET", state, "s:dead", .bytes(number(1) + number(0) + number(4)))
            _ = try await redis.send("HSET", state, "s:corrupt", "x")
            let noise = String(repeating: "x", count: 26)
            for (slot, record) in ["x", "", "h" + noise, "h" + noise + "t:m"].enumerated() {
                _ = try await redis.send("HSET", state, .string("c:dead:\(slot)"), .string(record))
            }
            for session in ["dead", "corrupt"] as [RedisArgument] {
                _ = try await redis.send("ZADD", "rdc:{default:0}:sessions", 1, session)
            }
            try await until("the corrupt records are removed") {
                try await redis.send("ZCARD", "rdc:{default:0}:sessions").integer == 2
            }
            try await untilHeartbeats(2, redis)
            #expect(lease.isHeld)
            try await lease.release()
            try await Audit(redis).check()
        }
    }

    @Test("after the index was deleted, a mutex is still held, and can be locked again when it is released")
    func deletedIndex() async throws {
        try await withCoordinators(configuration: mediumTTL) { _, one, two, redis in
            let lease = try await one.mutex("m").lock()
            _ = try await redis.send("DEL", "rdc:{default:0}:index")
            #expect(try await two.mutex("m").tryLock() == nil)
            try await lease.release()
            try await two.mutex("m").lock(timeout: .seconds(30)).release()
        }
    }

    @Test("waiters fail immediately when the client stops")
    func stoppedClient() async throws {
        try await withServer { server, _, redis in
            var configuration = CoordinatorConfiguration()
            configuration.ttl = .seconds(300)
            let client = try RedisClient(RedisConfiguration(url: server.url))
            let running = Task { await client.run() }
            try await withCoordinator(redis: client, configuration: configuration) { one in
                let semaphore = try one.semaphore("s", permits: 0)
                let waiting = (0..<1000).map { _ in Task { try await semaphore.wait() } }
                try await until("all waiters are queued") { try await one.inspect("s")?.waiterCount == 1000 }
                running.cancel()
                await running.value
                let failed = Locked(0)
                let listening = Task {
                    for task in waiting where await errorOf({ try await task.value })?.code == .stopped {
                        failed.withLock { $0 += 1 }
                    }
                }
                // The session would expire by the local clock only after 300 s.
                try await until("all waiters have failed") { failed.withLock { $0 } == 1000 }
                await listening.value
            }
        }
    }

    @Test("a namespace of the first layout is refused with an error that names both layouts, and is not changed")
    func firstLayout() async throws {
        try await withServer { _, redis, other in
            _ = try await other.send(
                "HSET", "rdc:{default:0}:book", "epoch", "e", "clock", "12345678", "partitions", "1")
            try await withCoordinator(redis: redis, configuration: longTTL) { coordinator in
                let error = await errorOf { try await coordinator.mutex("m").withLock { _ in } }
                #expect(error?.code == .conflict)
                #expect(error?.message.contains("layout 1") == true && error?.message.contains("layout 3") == true)
                #expect(await errorOf { _ = try await coordinator.list() }?.code == .conflict)
            }
            #expect(try await other.send("HLEN", "rdc:{default:0}:book").integer == 3)
        }
    }

    @Test("a program that knows only the first layout refuses a namespace of this one")
    func laterLayout() async throws {
        try await withCoordinators { _, one, _, redis in
            try await one.mutex("m").withLock { _ in }
            // Its scripts compare this field with the number of partitions.
            #expect(try await redis.send("HGET", "rdc:{default:0}:book", "partitions").string == "1 layout 3")
        }
    }

    @Test("a different number of partitions is refused with an error that names both")
    func partitions() async throws {
        try await withServer { _, redis, other in
            var eight = longTTL
            eight.partitions = 8
            try await withCoordinator(redis: redis, configuration: eight) { first in
                for number in 0..<20 { try await first.mutex("m\(number)").withLock { _ in } }
                try await withCoordinator(redis: other, configuration: longTTL) { second in
                    let error = await errorOf { try await second.mutex("m").withLock { _ in } }
                    #expect(error?.code == .conflict)
                    #expect(error?.message.contains("8 partitions") == true)
                    #expect(error?.message.contains("with 1") == true)
                    // These need no session, and would read the wrong partition.
                    let inspecting = await errorOf { _ = try await second.inspect("m") }
                    #expect(inspecting?.code == .conflict)
                    let listing = await errorOf { _ = try await second.list() }
                    #expect(listing?.code == .conflict)
                }
            }
        }
    }
}
