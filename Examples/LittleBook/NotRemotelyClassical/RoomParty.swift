// Room party: any number of students may be in a room. The dean enters only when the room is empty,
// to search it, or when enough students are there to make a party, to break it up. While the dean
// is inside, no student enters, but students may leave, and the dean leaves only after all of them.
//
// The book passes the mutex to the dean. Here the dean looks again after every change. If a process
// is killed: who is inside is stored in the same step as the log entry. A dead process, also the
// dean, stays inside, and its next life continues from there.
import RedisDC

struct RoomParty: Problem {
    let name = "room-party"
    let title = "The dean enters an empty room, or a party"
    let chapter = Chapter.notRemotelyClassical
    let processes = 5

    func cast(_ processes: Int) -> [Role] {
        [
            Role("dean", 1, roundEnd: "leaves", play: dean),
            Role("student", processes - 1, roundEnd: "leaves", play: student),
        ]
    }

    /// The number of students that make a party.
    private func party(_ students: Int?) -> Int { max(2, (students ?? 0) - 1) }

    func dean(_ me: Player) async throws {
        let room = try me.coordinator.mutex("room")
        let change = try room.condition("change")
        let party = party(me.counts["student"])
        // A former life may have died after it left and before its notification.
        try await room.withLock { _ in try await change.notifyAll() }
        for round in try await me.roundsUntilAllAreDone() {
            try await room.withLock { lease in
                while true {
                    let places = try await me.places()
                    if places[me.name] == "inside" { break }
                    if places.isEmpty || places.count >= party {
                        try await me.log("enters", round, to: "inside")
                        break
                    }
                    try await change.wait(lease)
                }
            }
            try await me.work()
            try await room.withLock { lease in
                while try await me.places().count > 1 { try await change.wait(lease) }
                try await me.log("leaves", round, to: "")
                try await change.notifyAll()
            }
            try await me.work()
        }
    }

    func student(_ me: Player) async throws {
        let room = try me.coordinator.mutex("room")
        let change = try room.condition("change")
        try await room.withLock { _ in try await change.notifyAll() }
        for round in try await me.roundsUntilAllAreDone() {
            try await room.withLock { lease in
                if try await me.places()[me.name] == "inside" { return }
                while try await me.places()["dean-1"] == "inside" { try await change.wait(lease) }
                try await me.log("enters", round, to: "inside")
                try await change.notifyAll()
            }
            try await me.work()
            try await room.withLock { _ in
                try await me.log("leaves", round, to: "")
                try await change.notifyAll()
            }
            try await me.work()
        }
    }

    func check(_ log: Log) -> [Invariant] {
        let party = party(log.count(of: "student"))
        var comes = Invariant("the dean enters an empty room or a party", unit: "visits")
        var closed = Invariant("no student enters while the dean is inside", unit: "students")
        var goes = Invariant("the dean leaves after all students", unit: "visits")
        var students: Set<String> = []
        var isDeanInside = false
        for (line, entry) in log.entries.enumerated() {
            switch (entry.role, entry.event) {
            case ("dean", "enters"):
                comes.checked += 1
                if !students.isEmpty, students.count < party {
                    comes.violate(line, entry, "\(students.count) are inside, and \(party) are a party")
                }
                isDeanInside = true
            case ("dean", "leaves"):
                goes.checked += 1
                if !students.isEmpty { goes.violate(line, entry, "still there: \(students.sorted())") }
                isDeanInside = false
            case ("student", "enters"):
                closed.checked += 1
                if isDeanInside { closed.violate(line, entry, "the dean is inside") }
                students.insert(entry.player)
            case ("student", "leaves"): students.remove(entry.player)
            default: break
            }
        }
        return [comes, closed, goes]
    }
}
