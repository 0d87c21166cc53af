// Extended child care: like child care, with one adult for every three children. But an adult that
// waits to leave does not keep a child waiting outside while there are enough adults. Adults may
// starve then, so the children stop after a number of rounds.
//
// The book counts those present and those waiting under a mutex. Here the place of each process is
// stored in the same step as its log entry, and waiters wait for a condition. If a process is
// killed, it stays where it was, and its next life continues from there.
import RedisDC

struct ExtendedChildCare: Problem {
    let name = "extended-child-care"
    let title = "An adult for every three children, and no child waits without need"
    let chapter = Chapter.notRemotelyClassical
    let processes = 6

    func cast(_ processes: Int) -> [Role] {
        [
            Role("adult", max(1, processes / 4), roundEnd: "leaves", play: adult),
            Role("child", processes - max(1, processes / 4), roundEnd: "leaves", play: child),
        ]
    }

    func adult(_ me: Player) async throws {
        let house = try me.coordinator.mutex("house")
        let change = try house.condition("change")
        for round in try await me.roundsUntilAllAreDone() {
            try await house.withLock { _ in
                if try await me.places()[me.name] == nil { try await me.log("enters", round, to: "inside") }
                try await change.notifyAll()
            }
            try await me.work()
            try await house.withLock { lease in
                while true {
                    let (adults, children) = try await inside(me)
                    if children <= 3 * (adults - 1) { break }
                    try await change.wait(lease)
                }
                try await me.log("leaves", round, to: "")
            }
            try await me.work()
        }
    }

    func child(_ me: Player) async throws {
        let house = try me.coordinator.mutex("house")
        let change = try house.condition("change")
        // A former life may have died after it left and before its notification.
        try await house.withLock { _ in try await change.notifyAll() }
        for round in try await me.rounds() {
            try await house.withLock { lease in
                while try await me.places()[me.name] != "inside" {
                    let (adults, children) = try await inside(me)
                    if children < 3 * adults {
                        try await me.log("enters", round, to: "inside")
                    } else {
                        try await me.log("waits", round)
                        try await change.wait(lease)
                    }
                }
            }
            try await me.work()
            try await house.withLock { _ in
                try await me.log("leaves", round, to: "")
                try await change.notifyAll()
            }
        }
    }

    private func inside(_ me: Player) async throws -> (adults: Int, children: Int) {
        let inside = try await me.places().keys
        return (inside.count { $0.hasPrefix("adult") }, inside.count { $0.hasPrefix("child") })
    }

    func check(_ log: Log) -> [Invariant] {
        var enough = Invariant("an adult for every three children", unit: "comings and goings")
        var needless = Invariant(
            "no child waits while there are enough adults for it", unit: "times that one wants to come in")
        var inside: Set<String> = []
        for (line, entry) in log.entries.enumerated() {
            switch entry.event {
            case "enters": inside.insert(entry.player)
            case "leaves": inside.remove(entry.player)
            case "waits": break
            default: continue
            }
            let adults = inside.count { $0.hasPrefix("adult") }
            let children = inside.count - adults
            if entry.role == "child", entry.event != "leaves" { needless.checked += 1 }
            if entry.event == "waits" {
                if children < 3 * adults { needless.violate(line, entry, "\(children) children, adults: \(adults)") }
            } else {
                enough.checked += 1
                if children > 3 * adults { enough.violate(line, entry, "\(children) children, adults: \(adults)") }
            }
        }
        return [enough, needless]
    }
}
