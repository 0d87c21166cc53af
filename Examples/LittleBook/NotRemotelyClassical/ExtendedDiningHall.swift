// Extended dining hall: like the dining hall, and no student sits down alone at an empty table. A
// student with food waits until a second one has food, and then both sit down.
//
// As in the book, the second one seats both. This is one step, in which both are recorded at the
// table in Redis and in the log, whether the other process is alive or not. If a process is killed,
// its next life continues from there.
import RedisDC

struct ExtendedDiningHall: Problem {
    let name = "extended-dining-hall"
    let title = "Nobody is left dining alone, and nobody sits down alone"
    let chapter = Chapter.notRemotelyClassical
    let processes = 4

    func cast(_ processes: Int) -> [Role] { [Role("student", processes, roundEnd: "leaves", play: student)] }

    func student(_ me: Player) async throws {
        let table = try me.coordinator.mutex("table")
        let change = try table.condition("change")
        for round in try await me.roundsUntilAllAreDone() {
            try await table.withLock { lease in
                if try await me.places()[me.name] == nil { try await sit(me, round) }
                try await change.notifyAll()
                while try await me.places()[me.name] == "has-food" { try await change.wait(lease) }
            }
            try await me.work()
            try await Table.leave(me, round, table, change)
            try await me.work()
        }
    }

    private func sit(_ me: Player, _ round: Int) async throws {
        let places = try await me.places()
        if places.values.contains(where: { $0 != "has-food" }) {
            try await me.log("dines", round, to: "dines")
        } else if let other = places.keys.first {
            try await me.log("dines", round, other, moving: [me.name: "dines", other: "dines"])
        } else {
            try await me.log("waits", round, to: "has-food")
        }
    }

    func check(_ log: Log) -> [Invariant] {
        var together = Invariant("nobody sits down alone", unit: "times")
        var seated: Set<String> = []
        for (line, entry) in log.entries.enumerated() {
            switch entry.event {
            case "dines":
                together.checked += 1
                seated.formUnion(Table.sitting(entry))
                if seated.count == 1 { together.violate(line, entry, "the table is empty") }
            case "leaves": seated.remove(entry.player)
            default: break
            }
        }
        return [together, Table.nobodyIsLeftAlone(log)]
    }
}
