// Baboon crossing: a rope hangs across a canyon. Baboons that go east and baboons that go west would fight if they met on
// it, and it breaks when too many hang on it. A baboon that has begun gets across, and nobody waits for ever.
//
// As in the book: a light switch for each direction, a turnstile before them so that no stream in one direction keeps the
// others away, and a multiplex for what the rope bears. Under kill -9: all of it is leases, so a dead one lets go of the rope.
import RedisDC

struct BaboonCrossing: Problem {
    let name = "baboon-crossing"
    let title = "One direction at a time on a rope that bears only so many"
    let chapter = Chapter.notSoClassical
    let processes = 6
    let fewest = 4

    /// What the rope bears.
    private static let most = 2

    func cast(_ processes: Int) -> [Role] {
        [
            Role("eastbound", processes - processes / 3, roundEnd: "arrives", play: baboon),
            Role("westbound", processes / 3, roundEnd: "arrives", play: baboon),
        ]
    }

    func baboon(_ me: Player) async throws {
        let turnstile = try me.coordinator.mutex("turnstile")
        let direction = try me.coordinator.mutex("rope").lightSwitch(me.name.hasPrefix("east") ? "east" : "west")
        let multiplex = try me.coordinator.semaphore("multiplex", permits: Self.most)
        for round in try await me.roundsUntilAllAreDone() {
            try await me.log("waits", round)
            let turn = try await turnstile.withLock { _ in try await direction.lock() }
            try await multiplex.withPermit { _ in
                try await me.log("swings", round)
                // Long enough for the next one to follow, and the one after it.
                for _ in 1...6 { try await me.work() }
                try await me.log("arrives", round)
            }
            try await turn.release()
        }
    }

    func check(_ log: Log) -> [Invariant] {
        [
            log.inside("all on the rope go the same way", from: ["swings"], to: ["arrives"]) { onRope, newcomer in
                onRope.allSatisfy { $0.role == newcomer.role }
            },
            log.atMost(Self.most, "the rope bears them", from: "swings", to: "arrives"),
            log.overtaking("nobody waits for ever", asks: "waits", gets: "swings", limit: 100),
        ]
    }
}
