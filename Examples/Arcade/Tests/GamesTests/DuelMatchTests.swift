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
            let hasChanged = try match.duel.play([token], by: player, id: "\(number)", using: &generator)
            #expect(hasChanged)
            #expect(phases() == [["wait", "solve"], ["wait", "make"], ["solve", "wait"], ["over", "over"]][number])
        }
        let result = try #require(match.view(of: "a", match: "1", version: 5).result)
        #expect(
            result.outcome == "drawn" && result.points == 100 && result.opponentsPoints == 100 && result.change == 0)
        #expect(result.rounds.allSatisfy { $0.made != nil && $0.solved != nil })
    }
}
