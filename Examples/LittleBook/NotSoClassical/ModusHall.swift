// Modus Hall: heathens and prudes share a path through snow that has room for only one faction. A
// process may follow its own faction onto the path, but only while the waiting members of the other
// faction do not outnumber all present members of its own: the majority rules, and the minority
// waits. As the minority may starve, all stop after a number of rounds.
//
// The book has a status variable for the ruling faction, and turnstiles. Here it is one mutex and a
// condition, and who waits or crosses is stored in the same step as the log entry. If a process is
// killed, it stays where it was, and its next life continues from there.
import RedisDC

struct ModusHall: Problem {
    let name = "modus-hall"
    let title = "Heathens or prudes on the path, and the majority rules"
    let chapter = Chapter.notSoClassical
    let processes = 6

    func cast(_ processes: Int) -> [Role] {
        [
            Role("heathen", processes - processes / 2, roundEnd: "leaves", play: walker),
            Role("prude", processes / 2, roundEnd: "leaves", play: walker),
        ]
    }

    func walker(_ me: Player) async throws {
        let hall = try me.coordinator.mutex("hall")
        let change = try hall.condition("change")
        // A former life may have died between a change and its notification.
        try await hall.withLock { _ in try await change.notifyAll() }
        for round in try await me.rounds() {
            try await hall.withLock { lease in
                if try await me.places()[me.name] == nil {
                    try await me.log("comes", round, to: "waits")
                    try await change.notifyAll()
                }
                while true {
                    let places = try await me.places()
                    if places[me.name] != "waits" { break }
                    if Factions(places, of: me.name).mayCross {
                        try await me.log("crosses", round, to: "crosses")
                        break
                    }
                    try await change.wait(lease)
                }
            }
            for _ in 1...3 { try await me.work() }
            try await hall.withLock { _ in
                try await me.log("leaves", round, to: "")
                try await change.notifyAll()
            }
            try await me.work()
        }
    }

    /// The number of processes of the own faction and of the other.
    private struct Factions {
        let own, others, othersCrossing: Int

        init(_ places: [String: String], of player: String) {
            let faction = player.prefix(1)
            own = places.count { $0.key.hasPrefix(faction) }
            others = places.count - own
            othersCrossing = places.count { !$0.key.hasPrefix(faction) && $0.value == "crosses" }
        }

        var mayCross: Bool { othersCrossing == 0 && own >= others }
    }

    func check(_ log: Log) -> [Invariant] {
        var apart = Invariant("heathens and prudes never meet on the path", unit: "crossings")
        var majority = Invariant("nobody starts against the majority of those present", unit: "crossings")
        var places: [String: String] = [:]
        for (line, entry) in log.entries.enumerated() {
            switch entry.event {
            case "comes": places[entry.player] = "waits"
            case "crosses":
                apart.checked += 1
                majority.checked += 1
                let factions = Factions(places, of: entry.player)
                if factions.othersCrossing > 0 { apart.violate(line, entry, "the others are on it") }
                if factions.own < factions.others {
                    majority.violate(line, entry, "\(factions.own) against \(factions.others)")
                }
                places[entry.player] = "crosses"
            case "leaves": places[entry.player] = nil
            default: break
            }
        }
        return [apart, majority]
    }
}
