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
}

/// The number of heartbeats: no other script calls this command.
private func heartbeats(_ redis: RedisClient) async throws -> Int {
    let stats = try await redis.send("INFO", "commandstats").string ?? ""
    let line = stats.split(whereSeparator: \.isNewline).first { $0.hasPrefix("cmdstat_zrangebyscore:calls=") }
    return line.flatMap { Int($0.dropFirst(28).prefix { $0.isNumber }) } ?? 0
}
