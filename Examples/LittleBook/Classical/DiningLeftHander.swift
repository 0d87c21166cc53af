// Dining philosophers with a left-hander: each philosopher needs both adjacent forks. All pick up
// the right fork first, except one that picks up the left fork first, so there is never a cycle in
// which each holds one fork and waits for the next.
//
// If a process is killed: the forks are leases. They are free when the dead holder's session has
// expired.
import RedisDC

struct LeftHander: Problem {
    let name = "dining-left-hander"
    let title = "Dining philosophers: one of them picks up the other fork first"
    let chapter = Chapter.classical
    let processes = 5

    func cast(_ processes: Int) -> [Role] {
        [Role("philosopher", processes, roundEnd: "stops", play: philosopher)]
    }

    func philosopher(_ me: Player) async throws {
        let seats = me.counts["philosopher"] ?? 0
        let right = try me.coordinator.mutex("fork \(me.index)")
        let left = try me.coordinator.mutex("fork \(me.index % seats + 1)")
        let (first, second) = me.index == 1 ? (left, right) : (right, left)
        for round in try await me.roundsUntilAllAreDone() {
            // The pauses, one of them with a fork in hand, soon cause a deadlock if there is no left-hander.
            try await pause(upTo: 5)
            try await me.log("hungers", round)
            try await first.withLock { _ in
                try await pause(upTo: 3)
                try await second.withLock { _ in
                    try await me.log("eats", round)
                    try await me.log("stops", round)
                }
            }
        }
    }

    private func pause(upTo milliseconds: Int) async throws {
        try await Task.sleep(for: .microseconds(Int.random(in: 0...1000 * milliseconds)))
    }

    func check(_ log: Log) -> [Invariant] {
        [
            log.neighboursEatApart(),
            log.overtaking("nobody starves", asks: "hungers", gets: "eats", limit: 100),
        ]
    }
}

extension Log {
    func neighboursEatApart() -> Invariant {
        let seats = players.count
        return inside("neighbours never eat at the same time", from: ["eats"], to: ["stops"]) { eating, newcomer in
            !eating.contains { [1, seats - 1].contains(abs($0.index - newcomer.index)) }
        }
    }
}
