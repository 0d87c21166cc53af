// Generalized smokers: like the cigarette smokers, but the agent does not wait until its deal has
// been smoked. The table may hold many ingredients, so the pushers count them. A pusher that finds
// an unpaired ingredient of another kind makes a pair for the smoker who has the third. Otherwise
// its own ingredient waits for a partner.
//
// The counts are on a scoreboard: the ingredients that a pusher has not handled (`lies`), the
// unpaired ones (`alone`), and the pairs `for` a smoker. If a process is killed: each step changes
// all its counts at once, and the next life continues from them.
import RedisDC

struct GeneralizedSmokers: Problem {
    let name = "generalized-smokers"
    let title = "Cigarette smokers with an agent that does not wait"
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
                let board = Counts(try await table.wait { $0 })
                let changes = two.map { ("lies \($0)", board.adding(1, "lies \($0)")) }
                try await table.change(
                    Dictionary(uniqueKeysWithValues: changes), "deals", deal, two.names, wakes: ["pusher"])
            }
            try await me.work()
        }
    }

    func pusher(_ me: Player) async throws {
        let table = try await Scoreboard(me, "table")
        let mine = Ingredient(of: me)
        while true {
            try await table.turn { table in
                let board = try await table.wait { Counts($0).of("lies \(mine)") > 0 ? Counts($0) : nil }
                var changes: [String: String?] = ["lies \(mine)": board.adding(-1, "lies \(mine)")]
                let partner = Ingredient.allCases.first { $0 != mine && board.of("alone \($0)") > 0 }
                if let partner {
                    let third = Set(Ingredient.allCases).subtracting([mine, partner]).names
                    changes["alone \(partner)"] = board.adding(-1, "alone \(partner)")
                    changes["for \(third)"] = board.adding(1, "for \(third)")
                } else {
                    changes["alone \(mine)"] = board.adding(1, "alone \(mine)")
                }
                let ingredients = Set([mine, partner].compactMap(\.self)).names
                try await table.change(changes, "pushes", nil, ingredients, wakes: partner == nil ? [] : ["smoker"])
            }
        }
    }

    func smoker(_ me: Player) async throws {
        let table = try await Scoreboard(me, "table")
        let mine = Ingredient(of: me)
        while true {
            try await table.turn { table in
                let board = try await table.wait { Counts($0).of("for \(mine)") > 0 ? Counts($0) : nil }
                try await table.change(["for \(mine)": board.adding(-1, "for \(mine)")], "smokes", wakes: [])
            }
            try await me.work()
        }
    }

    private struct Counts: Sendable {
        private let board: [String: String]

        init(_ board: [String: String]) { self.board = board }

        func of(_ field: String) -> Int { Int(board[field] ?? "") ?? 0 }
        func adding(_ count: Int, _ field: String) -> String { "\(of(field) + count)" }
    }

    func check(_ log: Log) -> [Invariant] {
        var smoking = Invariant("every ingredient smoked was dealt, and none is smoked twice", unit: "cigarettes")
        var pairing = Invariant("no ingredient stays unpaired while there is a partner for it", unit: "pushes")
        var dealt: [Ingredient: Int] = [:]
        var alone: [Ingredient: Int] = [:]
        for (line, entry) in log.entries.enumerated() {
            switch entry.event {
            case "deals": for ingredient in Set(names: entry.note) { dealt[ingredient, default: 0] += 1 }
            case "pushes":
                pairing.checked += 1
                let mine = Ingredient(of: entry)
                let partners = Set(names: entry.note).subtracting([mine])
                if partners.isEmpty { alone[mine, default: 0] += 1 }
                for partner in partners { alone[partner, default: 0] -= 1 }
                if alone.values.count(where: { $0 > 0 }) > 1 || alone.values.contains(where: { $0 < 0 }) {
                    pairing.violate(line, entry, "alone: \(alone)")
                }
            case "smokes":
                smoking.checked += 1
                for ingredient in Ingredient.allCases where ingredient != Ingredient(of: entry) {
                    dealt[ingredient, default: 0] -= 1
                    if dealt[ingredient, default: 0] < 0 { smoking.violate(line, entry, "no \(ingredient) was left") }
                }
            default: break
            }
        }
        return [smoking, pairing]
    }
}
