// Dining hall: students dine, and leave when they are ready. A student whose departure would leave
// a single other one dining alone waits until that one is ready too, or until another student sits
// down.
//
// The book counts under a mutex who eats and who is ready, and releases the waiting one. If a
// process is killed: who dines and who is ready is stored in the same step as the log entry. A dead
// student stays at the table, and its next life continues from there.
import RedisDC

struct DiningHall: Problem {
    let name = "dining-hall"
    let title = "Nobody is left dining alone"
    let chapter = Chapter.notRemotelyClassical
    let processes = 4

    func cast(_ processes: Int) -> [Role] { [Role("student", processes, roundEnd: "leaves", play: student)] }

    func student(_ me: Player) async throws {
        let table = try me.coordinator.mutex("table")
        let change = try table.condition("change")
        for round in try await me.roundsUntilAllAreDone() {
            try await table.withLock { _ in
                if try await me.places()[me.name] == nil { try await me.log("dines", round, to: "dines") }
                try await change.notifyAll()
            }
            try await me.work()
            try await Table.leave(me, round, table, change)
            try await me.work()
        }
    }

    func check(_ log: Log) -> [Invariant] { [Table.nobodyIsLeftAlone(log)] }
}

/// The table in both dining halls.
enum Table {
    /// Waits until no single student would be left dining, and leaves.
    static func leave(_ me: Player, _ round: Int, _ table: DistributedMutex, _ change: Condition) async throws {
        try await table.withLock { lease in
            if try await me.places()[me.name] == "dines" { try await me.log("finishes", round, to: "ready") }
            try await change.notifyAll()
            while try await isOneAlone(me.places().filter { $0.key != me.name }.map(\.value)) {
                try await change.wait(lease)
            }
            try await me.log("leaves", round, to: "")
        }
    }

    /// Whether exactly one student is at the table, and dines.
    private static func isOneAlone(_ places: [String]) -> Bool { places.filter { $0 != "has-food" } == ["dines"] }

    static func nobodyIsLeftAlone(_ log: Log) -> Invariant {
        var invariant = Invariant("nobody is left dining alone", unit: "leavings")
        var places: [String: String] = [:]
        for (line, entry) in log.entries.enumerated() {
            switch entry.event {
            case "dines": for one in sitting(entry) { places[one] = "dines" }
            case "finishes": places[entry.player] = "ready"
            case "leaves":
                invariant.checked += 1
                places[entry.player] = nil
                if isOneAlone(Array(places.values)) { invariant.violate(line, entry, "alone: \(places.keys.sorted())") }
            default: break
            }
        }
        return invariant
    }

    /// The students that sit down: the player of the entry and the one in its note.
    static func sitting(_ entry: Entry) -> [String] {
        [entry.player] + entry.note.split(separator: " ").map(String.init)
    }
}
