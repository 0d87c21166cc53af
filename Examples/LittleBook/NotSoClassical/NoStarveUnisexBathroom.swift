// Unisex bathroom without starvation: like the unisex bathroom, but all pass a turnstile first. A
// process that waits there for the other group to leave keeps all later ones behind it.
//
// No process stops here, so starvation would keep the run from ending. If a process is killed: all
// locks are leases, including the turnstile, a mutex that is held while its holder waits for its
// light switch.
import RedisDC

struct NoStarveUnisexBathroom: Problem {
    let name = "no-starve-unisex-bathroom"
    let title = "Women or men, never both, and nobody starves"
    let chapter = Chapter.notSoClassical
    let processes = 6
    let minProcesses = 4

    private static let places = 2

    func cast(_ processes: Int) -> [Role] {
        [
            Role("woman", processes - processes / 3, roundEnd: "leaves", play: visitor),
            Role("man", processes / 3, roundEnd: "leaves", play: visitor),
        ]
    }

    func visitor(_ me: Player) async throws {
        let mine = me.name.hasPrefix("woman") ? "women" : "men"
        let turnstile = try me.coordinator.mutex("turnstile")
        let group = try me.coordinator.mutex("empty").lightSwitch(mine)
        let places = try me.coordinator.semaphore("places for \(mine)", permits: Self.places)
        for round in try await me.roundsUntilAllAreDone() {
            try await me.log("waits", round)
            let membership = try await turnstile.withLock { _ in try await group.lock() }
            try await places.withPermit { _ in
                try await me.log("enters", round)
                // Long enough for others to arrive meanwhile.
                for _ in 1...6 { try await me.work() }
                try await me.log("leaves", round)
            }
            try await membership.release()
        }
    }

    func check(_ log: Log) -> [Invariant] {
        [
            log.inside("women or men, never both", from: ["enters"], to: ["leaves"]) { inside, newcomer in
                inside.allSatisfy { $0.role == newcomer.role }
            },
            log.atMost(Self.places, "never more than there are places", from: "enters", to: "leaves"),
            log.overtaking("nobody starves", asks: "waits", gets: "enters", limit: 100),
        ]
    }
}
