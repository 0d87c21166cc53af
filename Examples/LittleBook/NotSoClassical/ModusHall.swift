// Modus Hall: heathens and prudes share a path between snow fields that has room for one faction only. Who comes while its
// own is on it may follow, but only as long as those of the other faction who wait are not more than all of its own there:
// the majority rules, and the smaller one waits. As it may starve, all stop when they have come often enough.
//
// The book has a status that says who rules, and turnstiles. Here it is one mutex and a condition, and who waits or crosses
// is in Redis in one step with the log. Under kill -9 a dead one stays where it was, and goes on from there when it is back.
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
        // A former life may have changed something and told nobody.
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

    /// How many there are, of one's own faction and of the other.
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
        var majority = Invariant("nobody sets out against the majority of those who are there", unit: "crossings")
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
