// Child care: one adult is always present for every three children. A child waits for a place, and
// an adult that wants to leave waits until the remaining adults suffice.
//
// As in the book, an adult brings three places, and must acquire three before it leaves and takes
// them away. If a process is killed: a place is a lease, and the number of places is not
// incremented and decremented, but set to three for each adult present. A dead adult still counts,
// because the children cannot be sent away: it is recorded as present in Redis, and leaves in its
// next life.
import RedisDC

struct ChildCare: Problem {
    let name = "child-care"
    let title = "An adult for every three children"
    let chapter = Chapter.notRemotelyClassical
    let processes = 6

    func cast(_ processes: Int) -> [Role] {
        [
            Role("adult", processes / 3, roundEnd: "leaves", play: adult),
            Role("child", processes - processes / 3, roundEnd: "leaves", play: child),
        ]
    }

    private func places(_ me: Player) async throws -> Semaphore {
        try await me.coordinator.semaphore("places", permits: 0).create()
        // The existing semaphore, whatever number of permits it has by now.
        return try me.coordinator.existingSemaphore("places")
    }

    func adult(_ me: Player) async throws {
        let places = try await places(me)
        let door = try me.coordinator.mutex("door for adults")
        for round in try await me.roundsUntilAllAreDone() {
            try await door.withLock { _ in
                if try await me.places()[me.name] == nil { try await me.log("enters", round, to: "inside") }
                try await places.resize(to: 3 * me.places().count)
            }
            try await me.work()
            try await places.withPermits(3) { _ in
                try await door.withLock { _ in
                    try await places.resize(to: 3 * (me.places().count - 1))
                    try await me.log("leaves", round, to: "")
                }
            }
            try await me.work()
        }
    }

    func child(_ me: Player) async throws {
        let places = try await places(me)
        for round in try await me.roundsUntilAllAreDone() {
            try await places.withPermit { _ in
                try await me.log("enters", round)
                try await me.work()
                try await me.log("leaves", round)
            }
        }
    }

    func check(_ log: Log) -> [Invariant] {
        var invariant = Invariant("an adult for every three children", unit: "comings and goings")
        var children: Set<String> = []
        var adults: Set<String> = []
        for (line, entry) in log.entries.enumerated() {
            switch (entry.role, entry.event) {
            case ("child", "enters"): children.insert(entry.player)
            case ("child", "leaves"), ("child", Entry.killed): children.remove(entry.player)
            case ("adult", "enters"): adults.insert(entry.player)
            case ("adult", "leaves"): adults.remove(entry.player)
            default: continue
            }
            invariant.checked += 1
            if children.count > 3 * adults.count {
                invariant.violate(line, entry, "\(children.count) children, adults: \(adults.count)")
            }
        }
        return [invariant]
    }
}
