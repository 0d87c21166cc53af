// Senate bus: riders wait at a stop. When the bus arrives, the riders who wait then board, up to
// the number of seats; later ones wait for the next bus. The bus departs when all of them have
// boarded, at once if there are none.
//
// In the book, the bus holds the stop's mutex until all are aboard. Here it records its riders in
// the same step as its log entry, and waits for a latch that counts each of them once. If a rider
// is killed, it keeps its place, and its next life boards; the bus waits for it.
import RedisDC

struct SenateBus: Problem {
    let name = "senate-bus"
    let title = "The riders who wait when the bus arrives board it"
    let chapter = Chapter.notRemotelyClassical
    let processes = 5

    func cast(_ processes: Int) -> [Role] {
        [
            Role("bus", 1, roundEnd: "returns", play: bus),
            Role("rider", processes - 1, roundEnd: "rides", play: rider),
        ]
    }

    private func seats(_ riders: Int?) -> Int { max(1, (riders ?? 0) - 1) }

    func bus(_ me: Player) async throws {
        let stop = try me.coordinator.mutex("stop")
        let called = try stop.condition("called")
        let seats = seats(me.counts["rider"])
        for round in try await me.roundsUntilAllAreDone() {
            try await me.work()
            let count = try await stop.withLock { _ in
                if try await me.places()["riders of \(round)"] == nil {
                    func fence(_ place: String) -> Int { Int(place.split(separator: " ")[1]) ?? 0 }
                    let waiting = try await me.places().filter { $0.value.hasPrefix("waits") }
                    let riders = waiting.sorted { fence($0.value) < fence($1.value) }.prefix(seats).map(\.key)
                    var moves = Dictionary(uniqueKeysWithValues: riders.map { ($0, "called \(round)") })
                    moves["riders of \(round)"] = "\(riders.count)"
                    try await me.log("stops", round, moving: moves)
                }
                try await called.notifyAll()
                return try await Int(me.places()["riders of \(round)"] ?? "") ?? 0
            }
            try await me.coordinator.latch("aboard bus \(round)", count: count).wait()
            try await me.logOnce("departs", round)
            try await departed(me, round).countDown(id: me.name)
            try await me.log("returns", round)
        }
    }

    func rider(_ me: Player) async throws {
        let stop = try me.coordinator.mutex("stop")
        let called = try stop.condition("called")
        while true {
            try await stop.withLock { lease in
                if try await me.places()[me.name] == nil { try await me.log("comes", to: "waits \(lease.fence)") }
                while try await me.places()[me.name]?.hasPrefix("waits") == true { try await called.wait(lease) }
            }
            let places = try await me.places()
            let bus = Int(places[me.name]?.split(separator: " ")[1] ?? "") ?? 0
            if places[me.name] == "called \(bus)" { try await me.log("boards", bus, to: "aboard \(bus)") }
            let count = Int(places["riders of \(bus)"] ?? "") ?? 0
            try await me.coordinator.latch("aboard bus \(bus)", count: count).countDown(id: me.name)
            try await departed(me, bus).wait()
            try await me.log("rides", bus, to: "")
            try await me.work()
        }
    }

    private func departed(_ me: Player, _ bus: Int) throws -> Latch {
        try me.coordinator.latch("bus \(bus) departed", count: 1)
    }

    func check(_ log: Log) -> [Invariant] {
        let seats = seats(log.count(of: "rider"))
        var chosen = Invariant(
            "the riders who waited when the bus arrived board, up to the number of seats", unit: "boardings")
        var whole = Invariant("the bus departs when all of its riders are aboard", unit: "departures")
        var waiting: [String] = []
        var missing: [String] = []
        for (line, entry) in log.entries.enumerated() {
            switch entry.event {
            case "comes": waiting.append(entry.player)
            case "stops":
                missing = Array(waiting.prefix(seats))
                waiting.removeFirst(missing.count)
            case "boards":
                chosen.checked += 1
                if !missing.contains(entry.player) { chosen.violate(line, entry, "expected: \(missing)") }
                missing.removeAll { $0 == entry.player }
            case "departs":
                whole.checked += 1
                if !missing.isEmpty { whole.violate(line, entry, "not aboard: \(missing)") }
                missing = []
            default: break
            }
        }
        return [chosen, whole]
    }
}
