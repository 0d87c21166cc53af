// Preloaded turnstile: a reusable barrier of two turnstiles. The last one to come puts a pass for everyone into the first at
// once, instead of each one letting in the next. The second does so behind the critical point, so that nobody comes back
// to the rendezvous while someone is still on the way.
//
// Under kill -9: a pass may be lost with whoever took it, or be put in twice. So each round has turnstiles of its own, where
// passes that are left over hurt nobody, and who comes again and finds all there puts in passes for all again.
import Hiredis
import RedisDC

struct PreloadedTurnstile: Problem {
    let name = "preloaded-turnstile"
    let title = "A reusable barrier: the last one lets all pass at once"
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
            log.everyone("comes", before: "passes", "nobody passes before all have come"),
            log.everyone("passes", before: "comes", roundsBefore: 1, "nobody comes again before all have passed"),
        ]
    }
}
