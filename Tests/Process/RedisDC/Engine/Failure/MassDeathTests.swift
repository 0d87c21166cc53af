// Sessions that end at the same moment, as after a power cut or during a rolling restart.
import Foundation
import Hiredis
import RedisDCTesting
import Synchronization
import TestRandom
import TestSupport
import Testing

@testable import RedisDC
@testable import RedisDCTestSupport

extension EngineTests.FailureTests {
    @Test("what 300 sessions held that died together is free after a few heartbeats of one live process")
    func massDeath() async throws {
        let count = 300
        try await withServer { _, redis, other in
            for number in 0..<count {
                let node = try await ForeignNode(other)
                _ = try await node.request("acquire", "m\(number)", ["mf", "1", "m"])
                _ = try await node.request("acquire", "pool", ["sf", .integer(count), "l"])
                _ = try await node.request("acquire", "queue", ["sf", "0", "c"])
                // A session that leaves with claims is expired from then on.
                _ = try await node.run("leave", [.string(node.session)])
            }
            #expect(try await Audit(other).claims.count == 3 * count)
            let counting = CountingRedis(redis)
            try await withCoordinator(redis: counting, configuration: shortTTL) { coordinator in
                // A session starts with the first operation, and its heartbeats sweep the others.
                try await coordinator.mutex("live").withLock { _ in }
                try await until("all claims have ended and all sessions are deleted") {
                    let audit = try await Audit(other)
                    return audit.claims.isEmpty && audit.sessions.count == 1
                }
                // 64 sessions in each.
                #expect(counting.counts.heartbeats < 100)
                let audit = try await Audit(other)
                audit.check()
                #expect(audit.resources["pool"]?.free == count && audit.resources["queue"]?.waiting == 0)
                #expect(audit.slots.allSatisfy { $0.hasPrefix(audit.sessions.first ?? "-") })
            }
        }
    }

    @Test(
        "what 1,000 sessions in ten killed processes held and waited for is free, with few commands of each survivor",
        .timeLimit(.minutes(5)), arguments: [1, 8])
    func killedTogether(survivors: Int) async throws {
        let (processes, sessions, leases, ttl) = (10, 100, 10, 10)
        try await withServer { server, _, observer in
            let crowd = try (0..<processes).map {
                try Child(
                    "redisdc-worker", ["engine-crowd", server.url, "\($0)"] + [sessions, leases, ttl].map(String.init))
            }
            try await until("all sessions hold and wait") {
                try await observer.send("LLEN", "gathered").integer == processes * sessions
            }
            try await withSurvivors(survivors, of: server, ttl: .seconds(ttl)) { nodes, counters in
                // Behind the dead holders and the dead waiters.
                let queued = Task {
                    try await withThrowingTaskGroup(of: Void.self) { group in
                        for number in 0..<processes * sessions {
                            let name = "\(number / sessions)-\(number % sessions)-0"
                            group.addTask { try await nodes[number % survivors].mutex(name).withLock { _ in } }
                        }
                        try await group.waitForAll()
                    }
                }
                try await until("the survivors wait") {
                    // A waiter has a line; the lease of a mutex has none.
                    try await observer.send("ZLEXCOUNT", "rdc:{default:0}:index", "[q", "(r").integer
                        == processes * sessions * 2
                }
                let before = counters.map(\.counts)
                let start = ContinuousClock.now
                tally(.fault, processes)
                for child in crowd { kill(child.processID, SIGKILL) }
                try await queued.value
                try await until("the dead sessions are deleted") {
                    try await observer.send("ZCARD", "rdc:{default:0}:sessions").integer == survivors
                }
                let time = ContinuousClock.now - start
                let used = zip(counters, before).map { $0.counts - $1 }
                print("survivors: \(survivors), free after \(time), TTL + heartbeat: \(.seconds(ttl) * 4 / 3), \(used)")
                let audit = try await Audit(observer)
                audit.check()
                #expect(audit.claims.isEmpty)
                // Each claim is ended once and each session listed twice, by one of the survivors. Each waiter that is
                // granted releases.
                let ends = processes * sessions * (leases + 1)
                let all = used.reduce(CountingRedis.Counts()) { $0 + $1 }
                // On a busy machine, one takes over what another has not done in time.
                #expect(all.requests < 2 * (ends + processes * sessions * 5))
                // 64 sessions in each heartbeat, and the heartbeats that are due anyway.
                #expect(used.allSatisfy { $0.heartbeats < 16 + 60 })
            }
        }
    }

    @Test("a barrier with 4,000 dead waiters opens for the living")
    func deadParties() async throws {
        try await withServer { _, redis, _ in
            let parties = RedisArgument.integer(Barrier.maxParties)
            for _ in 0..<4 {
                let dying = try await ForeignNode(redis)
                for _ in 0..<1000 { _ = try await dying.request("arrive", "s", ["bo", parties, "a"]) }
                try await dying.expire()
            }
            let living = try await ForeignNode(redis)
            var first = 0
            for number in 0..<Barrier.maxParties {
                let request = try await living.number {
                    _ = try await living.request("arrive", "s", ["bo", parties, "a"])
                }
                if number == 0 { first = request }
            }
            // Each step handles a limited number of waiters.
            try await until("the barrier has opened") {
                _ = try await living.run("recheckMeeting", ["s"])
                return try await Audit(redis).resources["s"]?.waiting == 0
            }
            let audit = try await Audit(redis)
            #expect(audit.resources["s"]?.signalled == 1)
            #expect(audit.claims[await living.id(first)]?.state == "g")
        }
    }

    @Test("a session whose sweeper dies is swept by another process")
    func deadSweeper() async throws {
        try await withServer { _, redis, other in
            let (dying, sweeper) = (try await ForeignNode(other), try await ForeignNode(other))
            _ = try await dying.request("acquire", "m", ["mf", "1", "m"])
            try await dying.expire()
            // It receives the expired session, and does nothing with it.
            let work = try await sweeper.run("heartbeat", [.string(sweeper.session), 60_000_000, "", "", ""])
            #expect(work.contains(dying.session))
            try await withCoordinator(redis: redis, configuration: shortTTL) { coordinator in
                try await coordinator.mutex("m").lock(timeout: .seconds(60)).release()
            }
        }
    }

    @Test("claims that cannot be ended are set aside and reported, and delay nothing")
    func unendable() async throws {
        let count = 40
        try await withServer { _, redis, other in
            let (stuck, dying) = (try await ForeignNode(other), try await ForeignNode(other))
            for number in 0..<count { _ = try await stuck.request("acquire", "stuck\(number)", ["sf", "1", "l"]) }
            _ = try await dying.request("acquire", "m", ["mf", "1", "m"])
            // The script that ends the claims cannot read these records.
            for number in 0..<count {
                _ = try await other.send("HSET", "rdc:{default:0}:book", .string("t:stuck\(number)"), "rubbish")
            }
            for node in [stuck, dying] { try await node.expire() }
            let counting = CountingRedis(redis)
            try await withCoordinator(redis: counting, configuration: mediumTTL) { coordinator in
                let events = coordinator.events()
                let lease = try await coordinator.mutex("m").lock(timeout: .seconds(60))
                var reported: Set<String> = []
                for await event in events {
                    if case .claimSetAside(_, let resource) = event { reported.insert(resource) }
                    if reported.count == count { break }
                }
                try await until("the sessions are deleted") {
                    try await other.send("ZCARD", "rdc:{default:0}:sessions").integer == 1
                }
                // Three attempts at each.
                #expect(counting.counts.requests < 5 * count + 50)
                let list = try await coordinator.list()
                #expect(list.resources.map(\.name) == ["m"])
                #expect(Set(list.damaged.map(\.resource)).count == count && list.damaged.count == 2 * count)
                let error = await errorOf { _ = try await coordinator.inspect("stuck7") }
                #expect(error?.message.contains("field t:stuck7 of rdc:{default:0}:book") == true)
                #expect(lease.isHeld)
                try await lease.release()
                // The documented way to use the name again.
                for record in list.damaged {
                    _ = try await other.send("HDEL", .string(record.key), .string(record.field))
                }
                try await coordinator.semaphore("stuck7", permits: 1).wait(timeout: .seconds(60))
                #expect(try await coordinator.list().damaged.isEmpty)
            }
        }
    }
}

/// Runs `body` with coordinators that each have a connection of their own, and counts their requests.
private func withSurvivors(
    _ count: Int, of server: LocalRedis, ttl: Duration, nodes: [Coordinator] = [], counters: [CountingRedis] = [],
    _ body: ([Coordinator], [CountingRedis]) async throws -> Void
) async throws {
    if nodes.count == count { return try await body(nodes, counters) }
    var configuration = CoordinatorConfiguration()
    configuration.ttl = ttl
    try await withTestClient(url: server.url) { redis in
        let counting = CountingRedis(redis)
        try await withCoordinator(redis: counting, configuration: configuration) { node in
            try await withSurvivors(
                count, of: server, ttl: ttl, nodes: nodes + [node], counters: counters + [counting], body)
        }
    }
}

/// Counts the requests of an engine.
private final class CountingRedis: RedisDecorator {
    struct Counts: AdditiveArithmetic, CustomStringConvertible {
        static let zero = Counts()
        var requests = 0
        var heartbeats = 0

        var description: String { "\(requests) requests, \(heartbeats) heartbeats" }

        static func + (a: Self, b: Self) -> Self {
            Self(requests: a.requests + b.requests, heartbeats: a.heartbeats + b.heartbeats)
        }

        static func - (a: Self, b: Self) -> Self {
            Self(requests: a.requests - b.requests, heartbeats: a.heartbeats - b.heartbeats)
        }
    }

    let redis: RedisClient
    private let counted = Mutex(Counts())

    init(_ redis: RedisClient) { self.redis = redis }

    var counts: Counts { counted.withLock { $0 } }

    func post(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration?,
        completion: @escaping @Sendable (Result<RESPValue, RedisError>) -> Void
    ) {
        counted.withLock {
            $0.requests += 1
            if script.source == Scripts.heartbeat.source { $0.heartbeats += 1 }
        }
        redis.post(script, keys: keys, arguments: arguments, timeout: timeout, completion: completion)
    }
}
