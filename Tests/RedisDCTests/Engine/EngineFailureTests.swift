import Foundation
import Hiredis
import RedisDC
import RedisDCTesting
import Synchronization
import TestSupport
import Testing

/// A TTL that lets tests see sessions end.
private let short: CoordinatorConfiguration = {
    var configuration = CoordinatorConfiguration()
    configuration.ttl = .seconds(2)
    return configuration
}()

/// A server, a coordinator behind a proxy, another one without, and a client that looks on.
private func withProxiedCoordinator<Result>(
    configuration: CoordinatorConfiguration = .init(),
    _ body: (FaultProxy, _ proxied: Coordinator, _ other: Coordinator, _ redis: RedisClient) async throws -> Result
) async throws -> Result {
    try await withServer { server, _, redis in
        try await withFaultProxy(to: .port(server.port)) { proxy in
            try await withRedisClient(url: "redis://127.0.0.1:\(proxy.port)") { client in
                try await withCoordinator(redis: client, configuration: configuration) { proxied in
                    try await withCoordinator(redis: redis, configuration: configuration) { other in
                        try await body(proxy, proxied, other, redis)
                    }
                }
            }
        }
    }
}

extension EngineTests {
    @Suite("When things fail")
    struct FailureTests {
        // MARK: Lost replies

        @Test("an acquire whose answer is lost is granted once")
        func lostAcquire() async throws {
            try await withProxiedCoordinator { proxy, proxied, _, redis in
                let semaphore = try proxied.semaphore("tickets", permits: 1000)
                try await semaphore.create()
                for round in 0..<30 {
                    await proxy.dropNextReply(matching: "tickets")
                    try await semaphore.wait()
                    try await proxy.waitUntil { $0.droppedReplies == 2 * round + 1 }
                    await proxy.dropNextReply(matching: "tickets")
                    try await semaphore.acquire().release()
                    try await proxy.waitUntil { $0.droppedReplies == 2 * round + 2 }
                    try await until("round \(round) is settled") {
                        try await Audit(redis).things["tickets"]?.consumed == round + 1
                    }
                }
                let audit = try await Audit(redis)
                audit.check()
                #expect(audit.things["tickets"]?.free == 970)
                #expect(audit.claims.isEmpty)
            }
        }

        @Test("a signal whose answer is lost signals once")
        func lostSignal() async throws {
            try await withProxiedCoordinator { proxy, proxied, _, redis in
                let semaphore = try proxied.semaphore("tickets", permits: 0)
                try await semaphore.create()
                for round in 0..<30 {
                    await proxy.dropNextReply(matching: "tickets")
                    try await semaphore.signal(3)
                    try await proxy.waitUntil { $0.droppedReplies == round + 1 }
                }
                let audit = try await Audit(redis)
                audit.check()
                #expect(audit.things["tickets"]?.free == 90)
                #expect(audit.things["tickets"]?.signalled == 90)
            }
        }

        @Test("a release whose answer is lost releases once, and is none the wiser")
        func lostRelease() async throws {
            try await withProxiedCoordinator { proxy, proxied, other, redis in
                let mutex = try proxied.mutex("door")
                for round in 0..<30 {
                    let lease = try await mutex.lock()
                    let next = Task { try await other.mutex("door").lock() }
                    try await until("another waits") { try await other.inspect("door")?.waiterCount == 1 }
                    await proxy.dropNextReply(matching: "door")
                    try await lease.release()
                    try await proxy.waitUntil { $0.droppedReplies == round + 1 }
                    let heir = try await next.value
                    #expect(heir.fence > lease.fence)
                    #expect(heir.isHeld)
                    try await heir.release()
                }
                let audit = try await Audit(redis)
                audit.check()
                #expect(audit.things.isEmpty && audit.claims.isEmpty)
            }
        }

        @Test("a cancel whose answer is lost leaves nothing in the queue")
        func lostCancel() async throws {
            try await withProxiedCoordinator { proxy, proxied, other, redis in
                let semaphore = try proxied.semaphore("tickets", permits: 0)
                let signaller = try other.semaphore("tickets", permits: 0)
                for round in 0..<30 {
                    let waiting = Task { try await semaphore.wait() }
                    try await until("it waits") { try await other.inspect("tickets")?.waiterCount == 1 }
                    await proxy.dropNextReply(matching: "tickets")
                    waiting.cancel()
                    #expect(await errorOf { try await waiting.value }?.code == .cancelled)
                    try await proxy.waitUntil { $0.droppedReplies == round + 1 }
                    try await signaller.signal()
                    #expect(try await signaller.tryWait())
                }
                try await Audit(redis).check()
            }
        }

        // MARK: Wake-ups

        @Test("without wake-ups everything works, only slower")
        func noWakeUps() async throws {
            var configuration = CoordinatorConfiguration()
            configuration.usesWakeUps = false
            configuration.pollInterval = .milliseconds(20)
            try await withCoordinators(configuration: configuration) { _, one, two, redis in
                let a = try one.semaphore("a", permits: 0)
                let b = try two.semaphore("a", permits: 0)
                for _ in 0..<10 {
                    async let waiting: Void = a.wait(timeout: .seconds(30))
                    try await until("it waits") { try await two.inspect("a")?.waiterCount == 1 }
                    try await b.signal()
                    try await waiting
                }
                #expect(try await redis.send("PUBSUB", "CHANNELS").array?.isEmpty == true)
            }
        }

        @Test("a wake-up that is never sent is made up for by the next heartbeat")
        func lostWakeUp() async throws {
            try await withCoordinators(configuration: short) { _, one, two, redis in
                let mute = try await ForeignNode(redis) {
                    $0.replacingOccurrences(of: "call('PUBLISH', ", with: "tostring(")
                }
                let semaphore = try one.semaphore("s", permits: 0)
                for _ in 0..<5 {
                    async let waiting: Void = semaphore.wait(timeout: .seconds(30))
                    try await until("it waits") { try await two.inspect("s")?.waiterCount == 1 }
                    try await mute.signal("s")
                    try await waiting
                }
            }
        }

        @Test("waiters do not notice that the subscription connection is killed again and again")
        func killedSubscription() async throws {
            try await withCoordinators { _, one, two, redis in
                let a = try one.semaphore("s", permits: 0)
                let b = try two.semaphore("s", permits: 0)
                let killing = Task {
                    while !Task.isCancelled {
                        _ = try await redis.send("CLIENT", "KILL", "TYPE", "pubsub")
                        try await Task.sleep(for: .milliseconds(20))
                    }
                }
                for _ in 0..<200 {
                    async let waiting: Void = a.wait(timeout: .seconds(30))
                    try await b.signal()
                    try await waiting
                }
                killing.cancel()
                _ = await killing.result
                #expect(try await a.value == 0)
                try await Audit(redis).check()
            }
        }

        // MARK: Loss

        @Test("when heartbeats do not get through, the body is cancelled before Redis gives the lock to another")
        func partition() async throws {
            try await withProxiedCoordinator(configuration: short) { proxy, proxied, other, _ in
                let events = proxied.events()
                let (entered, entering) = AsyncStream.makeStream(of: UInt64.self)
                let ended = Ended()
                let holder = Task {
                    try await proxied.mutex("m").withLock { lease in
                        entering.yield(lease.fence)
                        // Until it is cancelled.
                        try? await Task.sleep(for: .seconds(60))
                        #expect(!lease.isHeld)
                        ended.set()
                    }
                }
                var fences = entered.makeAsyncIterator()
                let fence = await fences.next()!
                await proxy.stall()
                let heir = try await other.mutex("m").lock(timeout: .seconds(30))
                #expect(ended.isSet)
                #expect(heir.fence > fence)
                await proxy.heal()
                #expect(await errorOf { try await holder.value }?.code == .lost)
                for await event in events {
                    if case .sessionLost(_, let reason) = event {
                        #expect(reason == .expired)
                        break
                    }
                }
                // And it lives on, in a new session.
                try await heir.release()
                try await proxied.mutex("m").withLock(timeout: .seconds(30)) { #expect($0.fence > heir.fence) }
            }
        }

        @Test("a waiter queues anew when its session was lost")
        func waiterSurvivesLoss() async throws {
            try await withProxiedCoordinator(configuration: short) { proxy, proxied, other, redis in
                let waiting = Task { try await proxied.semaphore("s", permits: 0).wait(timeout: .seconds(60)) }
                try await until("it waits") { try await other.inspect("s")?.waiterCount == 1 }
                let first = try await other.inspect("s")?.waiters.first?.session
                await proxy.stall()
                try await until("its session has ended") { try await !Audit(redis).sessions.contains(first!) }
                #expect(try await other.inspect("s")?.waiterCount == 0)
                await proxy.heal()
                try await until("it waits anew") { try await other.inspect("s")?.waiterCount == 1 }
                try await other.semaphore("s", permits: 0).signal()
                try await waiting.value
            }
        }

        @Test("FLUSHALL is reported to holders, and waiters queue anew")
        func flushAll() async throws {
            try await withCoordinators(configuration: short) { _, one, two, redis in
                let events = one.events()
                let lease = try await one.mutex("m").lock()
                let waiting = Task { try await two.mutex("m").lock(timeout: .seconds(60)) }
                try await until("it waits") { try await one.inspect("m")?.waiterCount == 1 }
                let (lost, losing) = AsyncStream.makeStream(of: RedisDCError.self)
                lease.onLoss { losing.yield($0) }
                _ = try await redis.send("FLUSHALL")
                var losses = lost.makeAsyncIterator()
                #expect(await losses.next()?.code == .lost)
                #expect(!lease.isHeld)
                #expect(await errorOf { try lease.check() }?.code == .lost)
                let heir = try await waiting.value
                #expect(heir.fence > lease.fence)
                #expect(await errorOf { try await lease.release() }?.code == .lost)
                #expect(heir.isHeld)
                var reasons: [SessionLoss] = []
                for await event in events {
                    if case .sessionLost(_, let reason) = event { reasons.append(reason) }
                    if case .dataLost = event { break }
                }
                #expect(reasons == [.dataLost])
                try await heir.release()
            }
        }

        @Test("SCRIPT FLUSH is not noticed")
        func scriptFlush() async throws {
            try await withCoordinators { _, one, _, redis in
                let mutex = try one.mutex("m")
                for _ in 0..<50 {
                    _ = try await redis.send("SCRIPT", "FLUSH")
                    try await mutex.withLock { _ in _ = try await redis.send("SCRIPT", "FLUSH") }
                }
            }
        }

        @Test("a restart with the data kept loses nothing; one without is reported")
        func restart() async throws {
            for persistence in [LocalRedis.Configuration.Persistence.appendOnly(fsync: .always), .none] {
                var configuration = CoordinatorConfiguration()
                configuration.ttl = .seconds(5)
                try await withCoordinators(.init(persistence: persistence), configuration: configuration) {
                    server, one, two, redis in
                    let lease = try await one.mutex("m").lock()
                    let semaphore = try two.semaphore("s", permits: 0)
                    let waiting = Task { try await semaphore.wait(timeout: .seconds(60)) }
                    try await until("it waits") { try await two.inspect("s")?.waiterCount == 1 }
                    await server.kill()
                    try await server.restart()
                    if persistence == .none {
                        try await until("the loss is noticed") { !lease.isHeld }
                    }
                    try await one.semaphore("s", permits: 0).signal()
                    try await waiting.value
                    if persistence != .none {
                        #expect(lease.isHeld)
                        try await lease.release()
                        try await Audit(redis).check()
                    }
                }
            }
        }

        @Test("at maxmemory nothing new is taken, and what is held can be kept and given back")
        func maxMemory() async throws {
            try await withCoordinators(configuration: short) { _, one, two, redis in
                let lease = try await one.mutex("m").lock()
                let waiting = Task { try await two.mutex("m").lock(timeout: .seconds(30)) }
                try await until("it waits") { try await one.inspect("m")?.waiterCount == 1 }
                _ = try await redis.send("CONFIG", "SET", "maxmemory", "1")
                #expect(await errorOf { _ = try await one.mutex("n").tryLock() }?.code == .serverError)
                // Longer than the TTL: heartbeats get through.
                try await Task.sleep(for: .milliseconds(2500))
                #expect(lease.isHeld)
                try await lease.release()
                let heir = try await waiting.value
                #expect(heir.isHeld)
                try await heir.release()
                _ = try await redis.send("CONFIG", "SET", "maxmemory", "0")
                let audit = try await Audit(redis)
                audit.check()
                #expect(audit.claims.isEmpty)
            }
        }

        @Test("the user that SECURITY.md describes can do it all")
        func leastPrivileges() async throws {
            let text = try String(
                contentsOf: URL(fileURLWithPath: #filePath).deletingLastPathComponent()
                    .appendingPathComponent("../../../SECURITY.md"), encoding: .utf8)
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
                        #expect(try await coordinator.survey().things.count == 1)
                        try await semaphore.destroy()
                    }
                }
            }
        }

        @Test("someone else's key in the way is named and left alone")
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

        @Test("another number of partitions is refused, naming both")
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
                        // Looking needs no session, and would look in the wrong place.
                        let looking = await errorOf { _ = try await second.inspect("m") }
                        #expect(looking?.code == .conflict)
                        let surveying = await errorOf { _ = try await second.survey() }
                        #expect(surveying?.code == .conflict)
                    }
                }
            }
        }

        @Test("an operator takes a lock away: the holder is told, the next one gets it")
        func forceRelease() async throws {
            try await withCoordinators { _, one, two, _ in
                let lease = try await one.mutex("m").lock()
                let waiting = Task { try await two.mutex("m").lock() }
                try await until("it waits") { try await one.inspect("m")?.waiterCount == 1 }
                #expect(try await two.mutex("m").forceRelease())
                let heir = try await waiting.value
                try await until("the holder is told") { !lease.isHeld }
                #expect(await errorOf { try await lease.release() }?.code == .lost)
                #expect(heir.isHeld)
                try await heir.release()
                #expect(try await two.mutex("m").forceRelease() == false)
            }
        }

        @Test("when a coordinator ends, what it held is free at once")
        func cleanEnd() async throws {
            try await withServer { _, redis, other in
                try await withCoordinator(redis: other) { stays in
                    let waiting = try await withCoordinator(redis: redis) { goes in
                        _ = try await goes.semaphore("s", permits: 3).acquire(3)
                        let mutex = try await goes.mutex("m").lock()
                        let waiting = Task { try await stays.mutex("m").lock() }
                        try await until("it waits") { try await stays.inspect("m")?.waiterCount == 1 }
                        withExtendedLifetime(mutex) {}
                        return waiting
                    }
                    try await waiting.value.release()
                    #expect(try await stays.semaphore("s", permits: 3).value == 3)
                    let audit = try await Audit(redis)
                    audit.check()
                    #expect(audit.claims.isEmpty && audit.sessions.count == 1)
                }
            }
        }
    }
}

private final class Ended: Sendable {
    private let flag = Atomic(false)
    func set() { flag.store(true, ordering: .releasing) }
    var isSet: Bool { flag.load(ordering: .acquiring) }
}
