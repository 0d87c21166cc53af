// Baboon crossing: a rope hangs across a canyon. Eastbound and westbound baboons would fight if
// they met on it, and it breaks under too many baboons. A baboon that has started gets across, and
// none waits forever.
//
// As in the book: a light switch for each direction, a turnstile before them so that a stream in
// one direction does not exclude the other, and a multiplex for the capacity of the rope. If a
// process is killed: all of these are leases, so a dead baboon releases the rope.
import RedisDC

struct BaboonCrossing: Problem {
    let name = "baboon-crossing"
    let title = "One direction at a time on a rope of limited capacity"
    let chapter = Chapter.notSoClassical
    let processes = 6
    let minProcesses = 4

    /// The capacity of the rope.
    private static let maxOnRope = 2

    func cast(_ processes: Int) -> [Role] {
        [
            Role("eastbound", processes - processes / 3, roundEnd: "arrives", play: baboon),
            Role("westbound", processes / 3, roundEnd: "arrives", play: baboon),
        ]
    }

    func baboon(_ me: Player) async throws {
        let turnstile = try me.coordinator.mutex("turnstile")
        let direction = try me.coordinator.mutex("rope").lightSwitch(me.name.hasPrefix("east") ? "east" : "west")
        let multiplex = try me.coordinator.semaphore("multiplex", permits: Self.maxOnRope)
        for round in try await me.roundsUntilAllAreDone() {
            try await me.log("waits", round)
            let turn = try await turnstile.withLock { _ in try await direction.lock() }
            try await multiplex.withPermit { _ in
                try await me.log("swings", round)
                // Long enough for the next two baboons to follow.
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
            log.atMost(Self.maxOnRope, "never more on the rope than it can hold", from: "swings", to: "arrives"),
            log.overtaking("nobody waits forever", asks: "waits", gets: "swings", limit: 100),
        ]
    }
}
