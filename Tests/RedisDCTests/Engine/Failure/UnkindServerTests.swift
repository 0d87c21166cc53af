// Servers that refuse commands, forget scripts or have corrupt or foreign keys.
import Foundation
import Hiredis
import RedisDC
import RedisDCTesting
import TestSupport
import Testing

extension EngineTests.FailureTests {
    @Test("operations succeed after SCRIPT FLUSH")
    func scriptFlush() async throws {
        try await withCoordinators { _, one, _, redis in
            let mutex = try one.mutex("m")
            for _ in 0..<50 {
                _ = try await redis.send("SCRIPT", "FLUSH")
                try await mutex.withLock { _ in _ = try await redis.send("SCRIPT", "FLUSH") }
            }
        }
    }

    @Test("at maxmemory requests are refused, and leases are kept and released")
    func maxMemory() async throws {
        try await withCoordinators(configuration: shortTTL) { _, one, two, redis in
            let lease = try await one.mutex("m").lock()
            let waiting = Task { try await two.mutex("m").lock(timeout: .seconds(30)) }
            try await until("the waiter is queued") { try await one.inspect("m")?.waiterCount == 1 }
            _ = try await redis.send("CONFIG", "SET", "maxmemory", "1")
            #expect(await errorOf { _ = try await one.mutex("n").tryLock() }?.code == .outOfMemory)
            try await untilHeartbeats(2, redis)
            #expect(lease.isHeld)
            try await lease.release()
            let successor = try await waiting.value
            #expect(successor.isHeld)
            try await successor.release()
            _ = try await redis.send("CONFIG", "SET", "maxmemory", "0")
            let audit = try await Audit(redis)
            audit.check()
            #expect(audit.claims.isEmpty)
        }
    }

    @Test("the ACL user of SECURITY.md may use everything but mailboxes")
    func leastPrivileges() async throws {
        let text = try String(
            contentsOf: URL(fileURLWithPath: #filePath).deletingLastPathComponent()
                .appendingPathComponent("../../../../SECURITY.md"), encoding: .utf8)
        let start = try #require(text.range(of: ">A-LONG-RANDOM-PASSWORD"))
        let end = try #require(text.range(of: "```", range: start.upperBound..<text.endIndex))
        let rules = text[start.upperBound..<end.lowerBound].split { $0.isWhitespace || $0 == "\\" }
        try await withLocalRedis(.init(aclUsers: ["app on >secret " + rules.joined(separator: " ")])) { server in
            let url = "redis://app:secret@127.0.0.1:\(server.port)"
            try await withRedisClient(url: url) { redis in
                try await withCoordinator(redis: redis) { coordinator in
                    let semaphore = try coordinator.semaphore("s", permits: 0)
                    async let waiting: Void = semaphore.wait(timeout: .seconds(20))
                    try await semaphore.signal(2)
                    try await waiting
                    try await coordinator.mutex("m").withLock { _ in }
                    #expect(try await semaphore.value == 1)
                    #expect(try await coordinator.list().resources.count == 1)
                    try await semaphore.resize(to: 3)
                    try await semaphore.destroy()
                    try await useEveryKind(coordinator)
                    _ = try await coordinator.inspect("m")
                    _ = try await coordinator.deadlocks()
                    _ = try await coordinator.mutex("m").forceRelease()
                    let dying = try await ForeignNode(redis)
                    _ = try await dying.request("acquire", "swept", ["mf", "1", "m"])
                    try await dying.expire()
                    _ = try await coordinator.mutex("swept").lock(timeout: .seconds(60))
                    let classic = try ClassicSemaphore("classic", redis: redis)
                    try await classic.create(permits: 1)
                    try await classic.wait(timeout: .seconds(20))
                    try await classic.signal()
                    try await classic.destroy()
                }
            }
        }
    }

    /// Uses each kind once, so that every script of the engine runs.
    private func useEveryKind(_ coordinator: Coordinator) async throws {
        let (mutex, short) = (try coordinator.mutex("m"), Duration.milliseconds(20))
        try await coordinator.mutex("k", locality: .cohort()).withLock { _ in }
        try await coordinator.withLocks([mutex, try coordinator.mutex("n")]) { _ in }
        try await mutex.lightSwitch("readers").withLock { _ in }
        try await mutex.lightSwitch("writers").withLock { _ in }
        let condition = try mutex.condition("c")
        #expect(
            await errorOf { try await mutex.withLock { try await condition.wait($0, timeout: short) } }?.code
                == .timedOut)
        try await condition.notifyAll()
        let lock = try coordinator.readWriteLock("rw")
        try await lock.withReadLock { _ in }
        let writer = try await lock.writeLock()
        try await lock.downgrade(writer)
        try await writer.release()
        _ = try await coordinator.barrier("b", parties: 1).arriveAndWait()
        #expect(
            await errorOf { _ = try await coordinator.barrier("b2", parties: 2).arriveAndWait(timeout: short) }?.code
                == .timedOut)
        try await coordinator.doubleBarrier("db", parties: 1).run {}
        let party = try await coordinator.phaser("p").register()
        _ = try await party.arriveAndWait()
        try await party.deregister()
        let latch = try coordinator.latch("l", count: 2)
        try await latch.withParticipation { _ in }
        _ = try await latch.countDown(id: "a")
        try await latch.wait()
        try await latch.destroy()
        let turnstile = try coordinator.turnstile("t")
        try await turnstile.admit()
        try await turnstile.pass()
        try await turnstile.unlock()
        try await turnstile.lock()
        try await turnstile.destroy()
        let exchanger = try coordinator.exchanger("e", of: Int.self, parties: 2)
        async let first = exchanger.exchange(1)
        async let second = exchanger.exchange(2)
        _ = try await (first, second)
        let buffer = try coordinator.boundedBuffer("q", of: Int.self, capacity: 2)
        try await buffer.put(1)
        #expect(try await buffer.take() == 1)
        try await buffer.destroy()
        try await coordinator.election("el").withLeadership { _ in }
        _ = try await coordinator.election("el").leader()
        _ = try await coordinator.rateLimiter("r", rate: 1, per: .seconds(1)).tryAcquire()
    }

    @Test("a key of the wrong type is named in the error and not changed")
    func wrongType() async throws {
        for key in ["book", "index", "sessions"] {
            try await withServer { _, redis, other in
                let name = "rdc:{default:0}:\(key)"
                _ = try await other.send("SET", .string(name), "mine")
                try await withCoordinator(redis: redis) { coordinator in
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
        try await withCoordinators(configuration: shortTTL) { _, one, _, redis in
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
        try await withCoordinators(configuration: shortTTL) { _, one, two, redis in
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
            try await withCoordinator(redis: redis) { coordinator in
                let error = await errorOf { try await coordinator.mutex("m").withLock { _ in } }
                #expect(error?.code == .conflict)
                #expect(error?.message.contains("layout 1") == true && error?.message.contains("layout 2") == true)
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
            #expect(try await redis.send("HGET", "rdc:{default:0}:book", "partitions").string == "1 layout 2")
        }
    }

    @Test("a different number of partitions is refused with an error that names both")
    func partitions() async throws {
        try await withServer { _, redis, other in
            var eight = CoordinatorConfiguration()
            eight.partitions = 8
            try await withCoordinator(redis: redis, configuration: eight) { first in
                for number in 0..<20 { try await first.mutex("m\(number)").withLock { _ in } }
                try await withCoordinator(redis: other) { second in
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
