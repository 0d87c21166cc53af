import Foundation
import Games
import Testing

@Suite("Matches of the duel")
struct DuelMatchTests {
    @Test("no view tells an equation or points before the end")
    func hidden() throws {
        var generator = SystemRandomNumberGenerator()
        var match = DuelMatch(
            ["a", "b"], [DuelPlayer(), DuelPlayer()], beginning: "1", isRandom: true, using: &generator)
        func text(_ player: String) throws -> String {
            String(decoding: try JSONEncoder().encode(match.view(of: player, match: "1", version: 3)), as: UTF8.self)
        }
        func phases() -> [String] { ["a", "b"].map { match.view(of: $0, match: "1", version: 1).phase } }
        #expect(phases() == ["make", "wait"])
        for (number, player) in ["a", "b", "b", "a"].enumerated() {
            let seen = try text("a") + text("b")
            for word in ["made", "solved", "points", "result"] { #expect(!seen.contains(word), "\(word) in \(seen)") }
            // Only the solver sees the value to reach.
            #expect(try text(player).contains("target") == (number % 2 == 1))
            #expect(try !text(player == "a" ? "b" : "a").contains("target"))
            let round = match.duel.rounds[number / 2]
            let token = try #require(round.selection.first { Double($0) != nil })
            let hasChanged = try match.duel.play(
                [token], by: player, id: "\(number)", toolbox: [], using: &generator)
            #expect(hasChanged)
            #expect(phases() == [["wait", "solve"], ["wait", "make"], ["solve", "wait"], ["over", "over"]][number])
        }
        let result = try #require(match.view(of: "a", match: "1", version: 5).result)
        #expect(
            result.outcome == "drawn" && result.points == 100 && result.opponentsPoints == 100 && result.change == 0)
        #expect(result.rounds.allSatisfy { $0.made != nil && $0.solved != nil })
    }

    /// A match of two players that was quit by the second one.
    private func quitMatch(
        _ players: [String], _ states: [DuelPlayer], beginning: String = "1", after earlier: DuelMatch? = nil
    ) -> DuelMatch {
        var generator = SystemRandomNumberGenerator()
        var match = DuelMatch(
            players, states, beginning: beginning, isRandom: false, after: earlier, using: &generator)
        _ = match.duel.quit(players[1])
        return match
    }

    private func record(_ match: DuelMatch, _ name: String, in state: inout DuelPlayer) -> Bool? {
        match.record(for: name, in: &state)
    }

    @Test("matches of one player with the same id of the beginning count for each opponent, and each once")
    func sameBeginning() {
        var states = ["a", "b", "c"].map { name in
            var state = DuelPlayer()
            state.id = name
            return state
        }
        var last: DuelMatch?
        for (number, opponent) in [1, 2, 1].enumerated() {
            let match = quitMatch(
                ["a", ["b", "c"][opponent - 1]], [states[0], states[opponent]],
                after: opponent == 1 ? last : nil)
            #expect(match.number == number + 1)
            for _ in 0..<2 {
                let isFirst = states[0].lastMatch < match.number
                #expect(record(match, "a", in: &states[0]) == isFirst)
                #expect(record(match, match.duel.players[1], in: &states[opponent]) == isFirst)
            }
            if opponent == 1 { last = match }
        }
        // A win against a lower IQ counts less.
        #expect(states.map(\.iq) == [100 + 5 + 4 + 3, 100 - 5 - 3, 100 - 4])
    }

    @Test("a match is of no account for another player who uses the name later")
    func reusedName() {
        var (bob, guest, other) = (DuelPlayer(), DuelPlayer(), DuelPlayer())
        (bob.id, guest.id, other.id) = ("bob", "guest 1", "guest 2")
        let match = quitMatch(["bob", "guest"], [bob, guest])
        let hadNoMatch = DuelPlayer()
        for var state in [other, hadNoMatch] {
            let before = state
            #expect(!match.hasPlayer("guest", state) && record(match, "guest", in: &state) == nil)
            #expect(state == before)
        }
        #expect(match.hasPlayer("guest", guest) && match.hasPlayer("bob", bob) && !match.hasPlayer("guest", bob))
        #expect(record(match, "bob", in: &bob) == true && bob.iq == 105)
        // The next match of the name has a greater number.
        #expect(quitMatch(["bob", "guest"], [bob, other], after: match).number == match.number + 1)
        #expect(quitMatch(["guest", "bob"], [other, DuelPlayer()], after: match).number == match.number + 1)
    }
}
