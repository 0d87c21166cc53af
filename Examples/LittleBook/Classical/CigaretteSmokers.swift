// Cigarette smokers: a cigarette takes tobacco, paper and a match. Each smoker has an endless
// supply of one of them. The agent puts the other two on the table, without knowing for whom, and
// waits until they are smoked. If every smoker took what it lacks, two smokers would soon hold one
// ingredient each. So three pushers, one for each ingredient, collect what is on the table. Two
// pushed ingredients are for the smoker who has the third.
//
// The book's pushers signal the right smoker. Here the scoreboard shows what has been pushed, and
// each smoker checks whether it fits. If a process is killed, the scoreboard keeps its state, and
// the next life continues from it.
import RedisDC

struct CigaretteSmokers: Problem {
    let name = "cigarette-smokers"
    let title = "Only the smoker who has the third ingredient takes the other two"
    let chapter = Chapter.classical
    let processes = 7
    let minProcesses = 7

    func cast(_ processes: Int) -> [Role] {
        [
            Role("agent", 1, roundEnd: "deals", play: agent),
            Role("pusher", 3) { try await pusher($0) },
            Role("smoker", processes - 4, roundEnd: "smokes", play: smoker),
        ]
    }

    func agent(_ me: Player) async throws {
        let table = try await Scoreboard(me, "table")
        for deal in try await me.roundsUntilAllAreDone() {
            let two = Set(Ingredient.allCases).subtracting([.random])
            try await table.turn { table in
                try await table.wait { $0.isEmpty ? () : nil }
                try await table.change(
                    Dictionary(uniqueKeysWithValues: two.map { ($0.rawValue, "lies") }), "deals", deal, two.names,
                    wakes: ["pusher"])
            }
        }
    }

    func pusher(_ me: Player) async throws {
        let table = try await Scoreboard(me, "table")
        let mine = Ingredient(of: me)
        while true {
            try await table.turn { table in
                try await table.wait { $0[mine.rawValue] == "lies" ? () : nil }
                try await table.change([mine.rawValue: "pushed"], "pushes", nil, mine.rawValue, wakes: ["smoker"])
            }
        }
    }

    func smoker(_ me: Player) async throws {
        let table = try await Scoreboard(me, "table")
        let others = Set(Ingredient.allCases).subtracting([Ingredient(of: me)])
        while true {
            try await table.turn { table in
                let all = try await table.wait { board in
                    others.allSatisfy { board[$0.rawValue] == "pushed" } ? board : nil
                }
                try await table.change(all.mapValues { _ in nil }, "smokes", nil, others.names, wakes: ["agent"])
            }
            try await me.work()
        }
    }

    func check(_ log: Log) -> [Invariant] {
        var fitting = Invariant(
            "a smoker has the third ingredient, and the other two were dealt and pushed", unit: "cigarettes")
        var waiting = Invariant("the agent deals after the last deal has been smoked", unit: "deals")
        var lying: Set<Ingredient> = []
        var pushed: Set<Ingredient> = []
        for (line, entry) in log.entries.enumerated() {
            let ingredients = Set(names: entry.note)
            switch entry.event {
            case "deals":
                waiting.checked += 1
                if !lying.union(pushed).isEmpty {
                    waiting.violate(line, entry, "on the table: \(lying.union(pushed).names)")
                }
                lying.formUnion(ingredients)
            case "pushes":
                pushed.formUnion(ingredients.intersection(lying))
                lying.subtract(ingredients)
            case "smokes":
                fitting.checked += 1
                let isFitting = ingredients.count == 2 && !ingredients.contains(Ingredient(of: entry))
                if !isFitting || !ingredients.isSubset(of: pushed) {
                    fitting.violate(line, entry, "pushed: \(pushed.names)")
                }
                pushed.subtract(ingredients)
            default: break
            }
        }
        return [fitting, waiting]
    }
}

/// An ingredient of a cigarette.
enum Ingredient: String, CaseIterable, Codable, Sendable {
    case tobacco, paper, match

    static var random: Ingredient { allCases[Int.random(in: 0...2)] }

    /// The ingredient of a pusher, or the one that a smoker has.
    init(of me: Player) { self = Self.allCases[(me.index - 1) % 3] }
    init(of entry: Entry) { self = Self.allCases[(max(1, entry.index) - 1) % 3] }
}

extension Set<Ingredient> {
    init(names: String) { self = Set(names.split(separator: " ").compactMap { Ingredient(rawValue: String($0)) }) }

    var names: String { map(\.rawValue).sorted().joined(separator: " ") }
}
