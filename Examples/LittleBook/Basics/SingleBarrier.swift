// Single-use barrier: no process passes the critical point before all have arrived at the
// rendezvous. The processes are counted, and the last one opens a turnstile for all. It stays open,
// so each round uses a new barrier.
//
// If a process is killed: the processes are counted by name, so that one that arrives again counts
// once, and opening an open turnstile has no effect. If the last one dies before it has opened the
// turnstile, its next life finds all present and opens it.
import Hiredis
import RedisDC

struct SingleBarrier: Problem {
    let name = "barrier"
    let title = "Nobody proceeds before all have arrived"
    let chapter = Chapter.basics
    let processes = 4

    func cast(_ processes: Int) -> [Role] { [Role("thread", processes, roundEnd: "passes", play: thread)] }

    func thread(_ me: Player) async throws {
        for round in try await me.roundsUntilAllAreDone() {
            let turnstile = try me.coordinator.turnstile("turnstile of round \(round)")
            let come = me.key("come in round \(round)")
            try await me.work()
            try await me.log("comes", round)
            _ = try await me.redis.send("SADD", .string(come), .string(me.name))
            if try await me.redis.send("SCARD", .string(come)).integer == me.counts["thread"] {
                try await turnstile.unlock()
            }
            try await turnstile.pass()
            try await me.log("passes", round)
        }
    }

    func check(_ log: Log) -> [Invariant] {
        [log.everyone("comes", before: "passes", "nobody passes before all have arrived")]
    }
}

extension Log {
    /// Checks that no player does `later` before every player has done `earlier` of the same round,
    /// or of the round `roundsBefore` rounds earlier.
    func everyone(
        _ earlier: String, before later: String, roundsBefore: Int = 0, _ statement: String
    ) -> Invariant {
        var invariant = Invariant(statement, unit: "times")
        var done: [Int: Set<String>] = [:]
        for (line, entry) in entries.enumerated() {
            if entry.event == earlier { done[entry.number ?? 0, default: []].insert(entry.player) }
            let round = (entry.number ?? 0) - roundsBefore
            guard entry.event == later, round > 0 else { continue }
            invariant.checked += 1
            let absent = players.filter { done[round]?.contains($0) != true }
            if !absent.isEmpty { invariant.violate(line, entry, "not yet: \(absent.joined(separator: ", "))") }
        }
        return invariant
    }
}
