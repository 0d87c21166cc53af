// Preloaded turnstile: a reusable barrier of two turnstiles. The last process to arrive admits all
// at once through the first turnstile, instead of each process admitting the next. The second
// turnstile follows the critical point, so that no process returns to the rendezvous while another
// is still on its way.
//
// If a process is killed, a pass may be lost with it, or may be added twice. So each round has
// turnstiles of its own, where remaining passes do no harm, and a process that arrives again and
// finds all present adds passes for all again.
import Hiredis
import RedisDC

struct PreloadedTurnstile: Problem {
    let name = "preloaded-turnstile"
    let title = "A reusable barrier: the last process admits all at once"
    let chapter = Chapter.basics
    let processes = 4

    func cast(_ processes: Int) -> [Role] { [Role("thread", processes, roundEnd: "leaves", play: thread)] }

    func thread(_ me: Player) async throws {
        for round in try await me.roundsUntilAllAreDone() {
            try await me.work()
            try await me.log("comes", round)
            try await pass(me, "first turnstile of round \(round)")
            try await me.log("passes", round)
            try await pass(me, "second turnstile of round \(round)")
            try await me.log("leaves", round)
        }
    }

    private func pass(_ me: Player, _ name: String) async throws {
        let turnstile = try me.coordinator.turnstile(name)
        let come = me.key("come to the \(name)")
        let all = me.counts["thread"] ?? 0
        _ = try await me.redis.send("SADD", .string(come), .string(me.name))
        if try await me.redis.send("SCARD", .string(come)).integer == all { try await turnstile.admit(all) }
        try await turnstile.pass()
    }

    func check(_ log: Log) -> [Invariant] {
        [
            log.everyone("comes", before: "passes", "nobody passes before all have arrived"),
            log.everyone("passes", before: "comes", roundsBefore: 1, "nobody arrives again before all have passed"),
        ]
    }
}
