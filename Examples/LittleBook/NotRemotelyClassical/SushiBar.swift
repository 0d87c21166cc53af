// Sushi bar: a customer that finds a free seat sits down at once. But when all seats are taken,
// those who sit there are a party, and a customer that arrives then waits until all of them have
// left.
//
// This follows the book's "I'll do it for you" pattern: the last of a party to leave gives the
// seats to those who have waited longest, so that no later customer takes them. If a process is
// killed: who sits and who waits is stored in the same step as the log entry. A dead process stays
// where it was, and its next life continues from there.
import RedisDC

struct SushiBar: Problem {
    let name = "sushi-bar"
    let title = "A customer that finds the bar full waits until all have left"
    let chapter = Chapter.notRemotelyClassical
    let processes = 5

    func cast(_ processes: Int) -> [Role] { [Role("customer", processes, roundEnd: "leaves", play: customer)] }

    private func seats(_ customers: Int?) -> Int { max(1, (customers ?? 0) - 2) }

    func customer(_ me: Player) async throws {
        let bar = try me.coordinator.mutex("bar")
        let seated = try bar.condition("seated")
        let seats = seats(me.counts["customer"])
        // A former life may have given seats to others and died before it notified them.
        try await bar.withLock { _ in try await seated.notifyAll() }
        for round in try await me.roundsUntilAllAreDone() {
            try await bar.withLock { lease in
                let places = try await me.places()
                if places[me.name] == nil, places["party"] == nil {
                    let eating = places.values.count { $0 == "eats" } + 1
                    try await me.log("sits", round, moving: [me.name: "eats", "party": eating == seats ? "full" : ""])
                } else if places[me.name] == nil {
                    try await me.log("waits", round, to: "waits \(lease.fence)")
                }
                while try await me.places()[me.name] != "eats" { try await seated.wait(lease) }
            }
            try await me.work()
            try await bar.withLock { _ in
                try await leave(me, round, seats)
                try await seated.notifyAll()
            }
            try await me.work()
        }
    }

    private func leave(_ me: Player, _ round: Int, _ seats: Int) async throws {
        let places = try await me.places()
        if places.values.count(where: { $0 == "eats" }) > 1 { return try await me.log("leaves", round, to: "") }
        func fence(_ place: String) -> Int { Int(place.split(separator: " ")[1]) ?? 0 }
        let waiting = places.filter { $0.value.hasPrefix("waits") }.sorted { fence($0.value) < fence($1.value) }
        let next = waiting.prefix(seats).map(\.key)
        var moves = Dictionary(uniqueKeysWithValues: next.map { ($0, "eats") })
        moves[me.name] = ""
        moves["party"] = next.count == seats ? "full" : ""
        try await me.log("leaves", round, next.joined(separator: " "), moving: moves)
    }

    func check(_ log: Log) -> [Invariant] {
        let seats = seats(log.players.count)
        var limit = Invariant("never more than there are seats", unit: "times")
        var party = Invariant("nobody sits down before all of a full party have left", unit: "times")
        var needless = Invariant("nobody waits without need", unit: "times that one comes")
        var eating: Set<String> = []
        var isFull = false
        for (line, entry) in log.entries.enumerated() {
            var newcomers: [String] = []
            switch entry.event {
            case "sits":
                needless.checked += 1
                newcomers = [entry.player]
            case "leaves":
                eating.remove(entry.player)
                isFull = isFull && !eating.isEmpty
                // The customers that get the seats.
                newcomers = entry.note.split(separator: " ").map(String.init)
            case "waits":
                needless.checked += 1
                if !isFull { needless.violate(line, entry, "\(eating.count) of \(seats) seats are taken") }
            default: break
            }
            guard !newcomers.isEmpty else { continue }
            limit.checked += 1
            party.checked += 1
            if isFull { party.violate(line, entry, "still there: \(eating.sorted().joined(separator: ", "))") }
            eating.formUnion(newcomers)
            if eating.count > seats { limit.violate(line, entry, "\(eating.count) sit on \(seats) seats") }
            isFull = isFull || eating.count >= seats
        }
        return [limit, party, needless]
    }
}
