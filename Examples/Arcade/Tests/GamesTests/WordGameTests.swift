import Foundation
import Games
import Testing

@Suite("The word game")
struct WordGameTests {
    private let list = WordList.common

    /// A game with these letters.
    private func game(_ letters: String) throws -> WordGame {
        let list = letters.map { "{\"letter\":\"\($0)\",\"hole\":0}" }.joined(separator: ",")
        return try JSONDecoder().decode(WordGame.self, from: Data("{\"letters\":[\(list)]}".utf8))
    }

    @Test("the letters of three words come up, in time, and never twice in a row in the same hole")
    func letters() {
        var generator = SystemRandomNumberGenerator()
        let words = ["apple", "quiz", "fox"]
        for _ in 0..<200 {
            let game = WordGame(words: words, using: &generator)
            #expect(game.letters.count * WordGame.letterSeconds == WordGame.seconds)
            var left = game.letters.map(\.letter)
            for letter in words.joined() {
                let place = left.firstIndex(of: String(letter))
                #expect(place != nil)
                if let place { left.remove(at: place) }
            }
            #expect(game.letters.allSatisfy { (0..<WordGame.holes).contains($0.hole) })
            #expect(zip(game.letters, game.letters.dropFirst()).allSatisfy { $0.hole != $1.hole })
        }
    }

    @Test("every game of the dictionary has three of its words")
    func common() throws {
        var generator = SystemRandomNumberGenerator()
        #expect(list.words.count > 1500)
        #expect(list.words.allSatisfy { (3...8).contains($0.count) && $0.allSatisfy { ("a"..."z").contains($0) } })
        for _ in 0..<100 {
            let game = WordGame(words: list.words, using: &generator)
            #expect(game.letters.count == 15)
        }
    }

    @Test("a word scores the square of its length if the dictionary has it")
    func points() throws {
        let game = try game("applefoxzzat")
        let scored = try game.score(
            [[0, 1, 2, 3, 4], [5, 6, 7], [8, 9], [10, 11]], elapsed: 40, isWord: list.contains)
        #expect(scored.map(\.word) == ["apple", "fox", "zz", "at"])
        #expect(scored.map(\.points) == [25, 9, 0, 0])
        #expect(try game.score([], elapsed: 0, isWord: list.contains).isEmpty)
        #expect(try game.score([[]], elapsed: 0, isWord: { _ in true }).map(\.points) == [0])
    }

    @Test("letters that are not there, come twice, or have not come up yet are refused, and so is a late call")
    func refused() throws {
        let game = try game("applefox")
        func code(_ words: [[Int]], _ elapsed: Double = 40) -> WordGame.IllegalWords? {
            do throws(WordGame.IllegalWords) {
                _ = try game.score(words, elapsed: elapsed, isWord: { _ in true })
                return nil
            } catch { return error }
        }
        for place in [-1, 8, .max, .min] { #expect(code([[place]]) == .noSuchLetter) }
        #expect(code([[0, 1, 0]]) == .letterUsedTwice && code([[0, 1, 2], [2, 3, 4]]) == .letterUsedTwice)
        #expect(code([[5, 6, 7]], 13.9) == .tooEarly && code([[5, 6, 7]], 14) == nil)
        #expect(code([], 45) == nil && code([], 45.1) == .tooLate)
    }

    @Test("the level begins with 1")
    func level() {
        #expect([-1, 0, 49, 50, 99, 100, 1000].map { WordGame.level(points: $0) } == [1, 1, 1, 2, 2, 3, 21])
    }
}
