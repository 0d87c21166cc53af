// Unisex bathroom: women and men use the same bathroom, never both at the same time, and no more at
// a time than there are places. As in the book's first solution, women may starve while men keep
// arriving, and the other way round, so all stop after a number of rounds.
//
// If a process is killed: all locks are leases. A light switch removes a dead member when its
// session has expired.
import RedisDC

struct UnisexBathroom: Problem {
    let name = "unisex-bathroom"
    let title = "Women or men, never both, and a limited number of them"
    let chapter = Chapter.notSoClassical
    let processes = 6
    let minProcesses = 4

    private static let places = 2

    func cast(_ processes: Int) -> [Role] {
        [
            Role("woman", processes - processes / 2, roundEnd: "leaves", play: visitor),
            Role("man", processes / 2, roundEnd: "leaves", play: visitor),
        ]
    }

    func visitor(_ me: Player) async throws {
        let mine = me.name.hasPrefix("woman") ? "women" : "men"
        let group = try me.coordinator.mutex("empty").lightSwitch(mine)
        let places = try me.coordinator.semaphore("places for \(mine)", permits: Self.places)
        for round in try await me.rounds() {
            try await group.withLock { _ in
                try await places.withPermit { _ in
                    try await me.log("enters", round)
                    try await me.work()
                    try await me.log("leaves", round)
                }
            }
            try await me.work()
        }
    }

    func check(_ log: Log) -> [Invariant] {
        [
            log.inside("women or men, never both", from: ["enters"], to: ["leaves"]) { inside, newcomer in
                inside.allSatisfy { $0.role == newcomer.role }
            },
            log.atMost(Self.places, "never more than there are places", from: "enters", to: "leaves"),
        ]
    }
}
