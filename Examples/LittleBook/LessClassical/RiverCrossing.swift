// River crossing: hackers and serfs cross in boats of four. One hacker with three serfs, or one
// serf with three hackers, is unsafe; every other crew is safe. All four board before anyone boards
// the next boat, and exactly one of them rows.
//
// As in the book, the process that completes a crew calls it. If a process is killed, it is not
// lost: its place (on the shore, called or aboard) is stored in the same step as its log entry, and
// its next life continues from there. The boat waits for it, because the four wait for latches of
// this boat, which count each of them once.
import RedisDC

struct RiverCrossing: Problem {
    let name = "river-crossing"
    let title = "Hackers and serfs cross in safe crews of four, and one rows"
    let chapter = Chapter.lessClassical
    let processes = 6
    let minProcesses = 4

    func cast(_ processes: Int) -> [Role] {
        [
            Role("hacker", processes - processes / 2, roundEnd: "lands", play: traveller),
            Role("serf", processes / 2, roundEnd: "lands", play: traveller),
        ]
    }

    func traveller(_ me: Player) async throws {
        let shore = try me.coordinator.mutex("shore")
        let called = try shore.condition("called")
        while true {
            let boat = try await shore.withLock { lease in
                var places = try await me.places()
                if places[me.name] == nil {
                    try await me.log("comes", to: "shore")
                    places[me.name] = "shore"
                }
                if let crew = crew(places) {
                    let boat = (Int(places["boats"] ?? "") ?? 0) + 1
                    var moves = Dictionary(uniqueKeysWithValues: crew.map { ($0, "called \(boat)") })
                    moves["boats"] = "\(boat)"
                    moves["rower \(boat)"] = crew[0]
                    try await me.log("calls", boat, moving: moves)
                }
                // Unconditional, because a caller may have died before it notified its crew.
                try await called.notifyAll()
                while true {
                    let place = try await me.places()[me.name] ?? ""
                    if place != "shore" { return Int(place.split(separator: " ")[1]) ?? 0 }
                    try await called.wait(lease)
                }
            }
            try await cross(me, boat)
        }
    }

    /// Four waiting travellers that are safe together; `nil` if there are none.
    private func crew(_ places: [String: String]) -> [String]? {
        let waiting = places.filter { $0.value == "shore" }.keys.shuffled()
        let (hackers, serfs) = (waiting.filter { $0.hasPrefix("h") }, waiting.filter { $0.hasPrefix("s") })
        if hackers.count >= 2, serfs.count >= 2 { return Array(hackers.prefix(2) + serfs.prefix(2)) }
        return [hackers, serfs].first { $0.count >= 4 }.map { Array($0.prefix(4)) }
    }

    private func cross(_ me: Player, _ boat: Int) async throws {
        func gone(_ boat: Int) throws -> Latch { try me.coordinator.latch("boat \(boat) is gone", count: 1) }
        let aboard = try me.coordinator.latch("aboard boat \(boat)", count: 4)
        if boat > 1 { try await gone(boat - 1).wait() }
        if try await me.places()[me.name] == "called \(boat)" { try await me.log("boards", boat, to: "aboard \(boat)") }
        try await aboard.countDown(id: me.name)
        try await aboard.wait()
        let places = try await me.places()
        if places["rower \(boat)"] == me.name {
            if places[me.name] == "aboard \(boat)" { try await me.log("rows", boat, to: "rowed \(boat)") }
            try await gone(boat).countDown(id: "gone")
        } else {
            try await gone(boat).wait()
        }
        try await me.log("lands", boat, to: "")
    }

    func check(_ log: Log) -> [Invariant] {
        var rows = Invariant(
            "exactly one rows, after all four have boarded and before anyone lands", unit: "rows and landings")
        var aboard = 0
        var rowed: Set<Int?> = []
        for (line, entry) in log.entries.enumerated() {
            switch entry.event {
            case "boards": aboard += 1
            case "rows":
                rows.checked += 1
                if aboard != 4 { rows.violate(line, entry, "\(aboard) are aboard") }
                if !rowed.insert(entry.number).inserted { rows.violate(line, entry, "a second traveller rows") }
                aboard = 0
            case "lands":
                rows.checked += 1
                if !rowed.contains(entry.number) { rows.violate(line, entry, "nobody has rowed") }
            default: break
            }
        }
        return [
            log.groups(of: "boards", size: 4, "four who are safe together board, all before the next boat") { crew in
                [0, 2, 4].contains(crew["hacker", default: 0]) && crew.values.reduce(0, +) == 4
            },
            rows,
        ]
    }
}
