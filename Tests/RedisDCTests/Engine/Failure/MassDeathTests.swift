// Sessions that end at the same moment, as after a power cut or during a rolling restart.
import Hiredis
import RedisDC
import TestSupport
import Testing

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
            let before = try await heartbeats(other)
            try await withCoordinator(redis: redis, configuration: shortTTL) { coordinator in
                // A session starts with the first operation, and its heartbeats sweep the others.
                try await coordinator.mutex("live").withLock { _ in }
                try await until("all claims have ended and all sessions are deleted") {
                    let audit = try await Audit(other)
                    return audit.claims.isEmpty && audit.sessions.count == 1
                }
                // 64 sessions in each.
                #expect(try await heartbeats(other) - before < 20)
                let audit = try await Audit(other)
                audit.check()
                #expect(audit.resources["pool"]?.free == count && audit.resources["queue"]?.waiting == 0)
                #expect(audit.slots.allSatisfy { $0.hasPrefix(audit.sessions.first ?? "-") })
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

    @Test("a claim that cannot be ended delays neither the sweep of other sessions nor the heartbeats")
    func unendable() async throws {
        try await withServer { _, redis, other in
            let (stuck, dying) = (try await ForeignNode(other), try await ForeignNode(other))
            _ = try await stuck.request("acquire", "stuck", ["sf", "1", "l"])
            _ = try await dying.request("acquire", "m", ["mf", "1", "m"])
            // The script that ends the claim cannot read this record.
            _ = try await other.send("HSET", "rdc:{default:0}:book", "t:stuck", "rubbish")
            for node in [stuck, dying] { try await node.expire() }
            try await withCoordinator(redis: redis, configuration: shortTTL) { coordinator in
                let lease = try await coordinator.mutex("m").lock(timeout: .seconds(60))
                let before = try await heartbeats(other)
                let start = ContinuousClock.now
                try await until("the stuck session was swept a few times more") {
                    try await heartbeats(other) - before >= 3
                }
                // Three heartbeats take two thirds of the TTL: nobody spins.
                #expect(ContinuousClock.now - start > .seconds(1))
                #expect(lease.isHeld)
                try await lease.release()
            }
        }
    }
}

/// The number of heartbeats: no other script calls this command.
private func heartbeats(_ redis: RedisClient) async throws -> Int {
    let stats = try await redis.send("INFO", "commandstats").string ?? ""
    let line = stats.split(whereSeparator: \.isNewline).first { $0.hasPrefix("cmdstat_zrangebyscore:calls=") }
    return line.flatMap { Int($0.dropFirst(28).prefix { $0.isNumber }) } ?? 0
}
