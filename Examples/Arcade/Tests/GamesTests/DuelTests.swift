import BET
import Foundation
import Games
import Testing

@Suite("The duel")
struct DuelTests {
    /// A duel whose rounds have this selection.
    private func duel(_ selection: [String] = ["1", "2", "3", "+", "*"]) throws -> Duel {
        var generator = SystemRandomNumberGenerator()
        let duel = Duel(players: ["a", "b"], tiers: [.basic, .bits], toolbox: [], using: &generator)
        return try replacing(selection, in: duel)
    }

    /// Replaces the selection of the current round.
    private func replacing(_ selection: [String], in duel: Duel) throws -> Duel {
        let data = try JSONEncoder().encode(duel)
        var json = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
        var rounds = try #require(json["rounds"] as? [[String: Any]])
        rounds[rounds.count - 1]["selection"] = selection
        json["rounds"] = rounds
        return try JSONDecoder().decode(Duel.self, from: try JSONSerialization.data(withJSONObject: json))
    }

    private func play(
        _ text: String, _ player: String, _ id: String, toolbox: [String] = [], in duel: inout Duel
    ) throws -> Bool {
        var generator = SystemRandomNumberGenerator()
        return try duel.play(
            text.split(separator: " ").map { String($0) }, by: player, id: id, toolbox: toolbox, using: &generator)
    }

    @Test("both make once and solve once, and points are known only at the end")
    func match() throws {
        var duel = try duel()
        #expect(duel.next == "a")
        #expect(try play("2 * 3", "a", "1", in: &duel))
        #expect(duel.next == "b" && duel.rounds[0].target == 6 && duel.points(of: "b") == nil)
        #expect(try play("( 1 + 2 ) * 3", "b", "2", in: &duel))
        #expect(duel.rounds.count == 2 && duel.next == "b" && duel.points(of: "b") == nil && duel.ending == nil)
        duel = try replacing(["4", "5", "-", "√"], in: duel)
        #expect(try play("√ 4 - 5", "b", "3", in: &duel))
        #expect(duel.next == "a" && duel.rounds[1].target == -3 && duel.rounds[1].made == ["√", "4", "-", "5"])
    }

    @Test("a match ends after both rounds, with points by how close the values are")
    func ending() throws {
        var duel = try duel()
        _ = try play("2 * 3", "a", "1", in: &duel)
        _ = try play("2 * 3", "b", "2", in: &duel)
        duel = try replacing(["4", "5", "+"], in: duel)
        _ = try play("4 + 5", "b", "3", in: &duel)
        _ = try play("5", "a", "4", in: &duel)
        #expect(duel.ending == .played && duel.next == nil)
        #expect(duel.points(of: "b") == 100 && duel.points(of: "a") == Duel.points(5, for: 9))
        #expect(throws: Duel.IllegalEquation.matchOver) { try play("5", "a", "5", in: &duel) }
        #expect(!duel.quit("a") && duel.changes(of: [100, 100]) == [-5, 5])
        #expect(duel.changes(of: [140, 100]) == [-10, 10] && duel.changes(of: [100, 140]) == [-1, 1])
    }

    @Test("points fall steadily with the distance, and are 100 for the value alone")
    func points() {
        #expect(Duel.points(7, for: 7) == 100 && Duel.points(0, for: 0) == 100 && Duel.points(-7, for: -7) == 100)
        #expect(Duel.points(110, for: 100) == 50 && Duel.points(90, for: 100) == 50 && Duel.points(80, for: 100) == 25)
        #expect(Duel.points(200, for: 100) == 0 && Duel.points(-1e308, for: 1e308) == 0 && Duel.points(1, for: 0) == 0)
        var last = 100
        for step in 0...400 {
            let points = Duel.points(100 + Double(step) / 3, for: 100)
            #expect(points <= last && points >= 0)
            last = points
        }
        #expect(last == 0)
    }

    @Test("an equation uses each token of the selection at most as often as it is there")
    func selection() throws {
        let selection = ["1", "2", "2", "+", "+", "clamp", "-"]
        func code(_ text: String) -> Duel.IllegalEquation? {
            do throws(Duel.IllegalEquation) {
                _ = try Duel.value(of: text.split(separator: " ").map { String($0) }, selection: selection)
                return nil
            } catch { return error }
        }
        for text in ["1", "1 + 2 + 2", "( ( 1 + 2 ) )", "clamp ( 1 , 2 , 2 )", "- 2"] {
            #expect(code(text) == nil, "\(text)")
        }
        #expect(code("1 + 1") == .notInSelection("1") && code("3") == .notInSelection("3"))
        #expect(code("1 + 2 + 2 + 1") == .notInSelection("+"))
        #expect(code("1 +") == .invalid("operandExpected", at: 2) && code("") == .invalid("operandExpected", at: 0))
        #expect(code("( 1") == .invalid("unclosedParenthesis", at: 0))
    }

    @Test("a move out of turn is refused, and one that comes again changes nothing")
    func again() throws {
        var duel = try duel()
        #expect(throws: Duel.IllegalEquation.notYourTurn) { try play("1", "b", "1", in: &duel) }
        #expect(throws: Duel.IllegalEquation.notYourTurn) { try play("1", "x", "1", in: &duel) }
        #expect(try play("1", "a", "1", in: &duel))
        let before = duel
        #expect(try !play("1", "a", "1", in: &duel) && duel == before)
        #expect(throws: Duel.IllegalEquation.notYourTurn) { try play("2", "a", "2", in: &duel) }
    }

    @Test("who quits ends the match and loses it")
    func quit() throws {
        var duel = try duel()
        #expect(!duel.quit("x") && duel.quit("b") && !duel.quit("a"))
        #expect(duel.ending == .quit && duel.next == nil && duel.changes(of: [100, 100]) == [5, -5])
        #expect(duel.points(of: "a") == nil)
    }

    @Test("what the second player buys during the first round comes up in the second one")
    func boughtDuringMatch() throws {
        var duel = try duel()
        _ = try play("2 * 3", "a", "1", toolbox: ["isqrt"], in: &duel)
        #expect(!duel.rounds[0].selection.contains("isqrt"))
        _ = try play("2 * 3", "b", "2", toolbox: ["100", "^2"], in: &duel)
        #expect(duel.rounds[1].selection.suffix(2) == ["100", "^2"] && !duel.rounds[1].selection.contains("isqrt"))
    }

    @Test(
        "every selection of every tier can be played, and has all items of the maker's toolbox",
        arguments: Dialect.Tier.allCases)
    func selections(tier: Dialect.Tier) throws {
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<300 {
            let toolbox = ["isqrt", "100", "^2", "10", "10"]
            let duel = Duel(players: ["a", "b"], tiers: [tier, .basic], toolbox: toolbox, using: &generator)
            let selection = duel.rounds[0].selection
            #expect(selection.count == 15 && selection.suffix(5) == toolbox)
            let numbers = selection.filter { Double($0) != nil }
            #expect(numbers.count >= 5)
            let joins = selection.filter { ["+", "-", "*"].contains($0) }
            let equation = [numbers[0], try #require(joins.first), numbers[1]]
            _ = try Duel.value(of: equation, selection: selection)
            for token in selection where Double(token) == nil {
                #expect(Dialect.standard.isOperator(token) || Dialect.standard.isFunction(token), "\(token)")
            }
        }
    }
}

@Suite("Players of the duel")
struct DuelPlayerTests {
    private func begin(_ number: Int, in player: inout DuelPlayer, against opponent: String) -> Bool {
        player.begin(number, against: opponent)
    }

    private func count(_ change: Int, of number: Int, in player: inout DuelPlayer, against opponent: String) -> Bool {
        player.count(change, of: number, against: opponent)
    }

    @Test("what is sold costs IQ, once for each trade, and as long as there is enough")
    func buy() throws {
        var player = DuelPlayer()
        #expect(try player.buy("isqrt", id: "1") && !player.buy("isqrt", id: "1"))
        #expect(player.iq == 95 && player.toolbox == ["isqrt"])
        #expect(throws: DuelPlayer.IllegalTrade.noSuchItem) { try player.buy("x", id: "2") }
        for number in 0..<19 { #expect(try player.buy("^2", id: "more \(number)")) }
        #expect(player.iq == 0)
        #expect(throws: DuelPlayer.IllegalTrade.tooExpensive(2)) { try player.buy("10", id: "3") }
    }

    @Test("everything that is sold or made is a number or has a meaning for the evaluator")
    func items() throws {
        for (item, price) in DuelPlayer.prices {
            #expect(price > 0)
            let dialect = Dialect.standard
            #expect(Double(item) != nil || dialect.isOperator(item) || dialect.isFunction(item), "\(item)")
            #expect(Double(item) != nil || DuelPlayer.tutorial[item] != nil, "\(item)")
        }
        for (item, line) in DuelPlayer.tutorial {
            // Each example is true.
            let parts = line.prefix { $0 != ":" }.components(separatedBy: " is ")
            let tokens = parts[0].split(separator: " ").map { String($0) }
            let value = try ParsedExpression(tokens).value()
            #expect(tokens.contains(item) && parts.count == 2 && Double(parts[1]) == value, "\(line)")
        }
    }

    @Test("x = x + 1 makes ++ and keeps its ingredients, and what is no recipe makes nothing")
    func craft() throws {
        var player = DuelPlayer()
        #expect(try player.craft(["x", "=", "x", "+", "1"], id: "1"))
        #expect(try !player.craft(["x", "=", "x", "+", "1"], id: "1"))
        #expect(player.toolbox == ["++"] && player.iq == 100)
        #expect(throws: DuelPlayer.IllegalTrade.noRecipe) { try player.craft(["x", "=", "x"], id: "2") }
        for number in 0..<29 { #expect(try player.craft(["x", "=", "x", "*", "x"], id: "more \(number)")) }
        #expect(throws: DuelPlayer.IllegalTrade.toolboxFull) { try player.craft(["x", "=", "x", "*", "x"], id: "3") }
    }

    @Test("an item is made only of operators that the player has")
    func ingredients() throws {
        let floor = ["x", "=", "x", "-", "x", "%", "1"]
        var player = DuelPlayer()
        #expect(throws: DuelPlayer.IllegalTrade.missingIngredient("%")) { try player.craft(floor, id: "1") }
        #expect("\(DuelPlayer.IllegalTrade.missingIngredient("%"))" == "missingIngredient %")
        // The operator is bought, or comes up at the player's tier.
        _ = try player.buy("%", id: "2")
        #expect(try player.craft(floor, id: "3") && player.toolbox == ["%", "floor"])
        var other = DuelPlayer()
        #expect(count(10, of: 1, in: &other, against: "bob") && other.tier == .powers)
        #expect(try other.craft(floor, id: "4"))
    }

    @Test("a match counts once, and the tier rises with the IQ")
    func count() {
        var player = DuelPlayer()
        var tiers: Set<Dialect.Tier> = [player.tier]
        for number in 1...12 {
            let hasBegun = player.begin(number, against: "bob")
            let isCounted = player.count(5, of: number, against: "bob")
            let hasBegunAgain = player.begin(number, against: "bob")
            let isCountedAgain = player.count(5, of: number, against: "bob")
            #expect(hasBegun && isCounted && !hasBegunAgain && !isCountedAgain)
            tiers.insert(player.tier)
        }
        #expect(player.iq == 160 && tiers.count == 4 && player.tier == .bits)
        // A node that is late counts an earlier match.
        #expect(!count(5, of: 11, in: &player, against: "bob") && player.iq == 160)
        #expect(count(-1000, of: 13, in: &player, against: "bob") && player.iq == 0)
    }

    @Test("no id of a trade prevents that a match counts")
    func tradeID() throws {
        var player = DuelPlayer()
        for id in ["1", "match:1", "match:bob", "bob", "bob:1"] {
            #expect(try player.craft(["x", "=", "x", "+", "1"], id: id))
        }
        #expect(begin(1, in: &player, against: "bob") && count(-5, of: 1, in: &player, against: "bob"))
        #expect(player.iq == 95)
        // Nor does a match prevent a trade.
        #expect(try player.craft(["x", "=", "x", "+", "1"], id: "match:2"))
    }

    @Test("the last ended matches are kept, and the others are not counted again")
    func keptMatches() throws {
        var player = DuelPlayer()
        _ = player.begin(1, against: "friend")
        for number in 2...200 {
            #expect(begin(number, in: &player, against: "bob\(number)"))
            #expect(count(1, of: number, in: &player, against: "bob\(number)"))
        }
        #expect(player.iq == 299 && player.lastMatch == 200)
        // First the unfinished one, and then the last ones.
        #expect(player.opponents == ["friend"] + (151...200).reversed().map { "bob\($0)" })
        #expect(player.unfinished == ["friend"])
        for number in 2...200 {
            #expect(!begin(number, in: &player, against: "bob\(number)"))
            #expect(!count(1, of: number, in: &player, against: "bob\(number)"))
        }
        #expect(count(1, of: 1, in: &player, against: "friend") && player.iq == 300)
        // The oldest of all has ended last, and is not kept.
        #expect(!count(1, of: 1, in: &player, against: "friend") && player.unfinished == [] && player.iq == 300)
        let data = try JSONEncoder().encode(player)
        #expect(data.count < 4000)
        #expect(try JSONDecoder().decode(DuelPlayer.self, from: data) == player)
    }
}
