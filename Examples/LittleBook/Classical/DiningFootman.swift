// Dining philosophers with a footman: the philosophers sit around a table with one fork between
// each two neighbours, and need both adjacent forks to eat. If all picked up the right fork first,
// all would wait forever. So a footman lets all but one sit down.
//
// If a process is killed: the forks and the footman's permission are leases. They are free when the
// dead holder's session has expired.
import RedisDC

struct Footman: Problem {
    let name = "dining-footman"
    let title = "Dining philosophers: a footman keeps one away from the table"
    let chapter = Chapter.classical
    let processes = 5

    func cast(_ processes: Int) -> [Role] {
        [Role("philosopher", processes, roundEnd: "stops", play: philosopher)]
    }

    func philosopher(_ me: Player) async throws {
        let seats = me.counts["philosopher"] ?? 0
        let footman = try me.coordinator.semaphore("footman", permits: seats - 1)
        let right = try me.coordinator.mutex("fork \(me.index)")
        let left = try me.coordinator.mutex("fork \(me.index % seats + 1)")
        for round in try await me.roundsUntilAllAreDone() {
            try await me.log("hungers", round)
            try await footman.withPermit { _ in
                try await me.log("sits", round)
                try await right.withLock { _ in
                    try await left.withLock { _ in
                        try await me.log("eats", round)
                        try await me.work()
                        try await me.log("stops", round)
                    }
                }
                try await me.log("rises", round)
            }
        }
    }

    func check(_ log: Log) -> [Invariant] {
        let seats = log.players.count
        return [
            log.inside("neighbours never eat at the same time", from: ["eats"], to: ["stops"]) { eating, newcomer in
                !eating.contains { [1, seats - 1].contains(abs($0.index - newcomer.index)) }
            },
            log.atMost(seats - 1, "never all at the table", from: "sits", to: "rises"),
            log.overtaking("nobody starves", asks: "hungers", gets: "eats", limit: 100),
        ]
    }
}
