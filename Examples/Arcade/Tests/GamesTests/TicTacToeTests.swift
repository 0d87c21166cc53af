import Foundation
import Games
import Testing

@Suite("Tic-tac-toe")
struct TicTacToeTests {
    private func game(_ cells: [Int]) throws -> TicTacToe {
        var game = TicTacToe()
        for cell in cells { try game.mark(cell, as: game.next) }
        return game
    }

    @Test("three in a row, a column or a diagonal win, for both marks")
    func lines() throws {
        let winning: Set = ["012", "345", "678", "036", "147", "258", "048", "246"]
        for (mark, letter) in [(TicTacToe.Mark.cross, "x"), (.circle, "o")] {
            // All sets of three cells.
            for a in 0..<7 {
                for b in a + 1..<8 {
                    for c in b + 1..<9 {
                        let cells = (0..<9).map { [a, b, c].contains($0) ? letter : "." }.joined()
                        let game = try #require(TicTacToe("x:" + cells))
                        let isLine = winning.contains("\(a)\(b)\(c)")
                        #expect(game.outcome == (isLine ? .won(by: mark, line: [a, b, c]) : nil))
                    }
                }
            }
        }
        // By moves, with the last cell of the board.
        #expect(try game([0, 1, 4, 2, 3, 5, 7, 6, 8]).outcome == .won(by: .cross, line: [0, 4, 8]))
    }

    @Test("all cells without a line are a draw")
    func draw() throws {
        let drawn = try game([0, 1, 2, 4, 3, 5, 7, 6, 8])
        #expect(drawn.outcome == .drawn)
        #expect("\(drawn)" == "o:xoxxoooxx")
    }

    @Test("a move is refused out of turn, outside the board, on a taken cell and after the end")
    func refused() throws {
        var start = TicTacToe()
        #expect(throws: TicTacToe.IllegalMove.notYourTurn) { try start.mark(0, as: .circle) }
        for cell in [-1, 9, .max, .min] {
            #expect(throws: TicTacToe.IllegalMove.noSuchCell) { try start.mark(cell, as: .cross) }
        }
        try start.mark(4, as: .cross)
        #expect(throws: TicTacToe.IllegalMove.cellTaken) { try start.mark(4, as: .circle) }
        var won = try game([0, 3, 1, 4, 2])
        let before = won
        #expect(throws: TicTacToe.IllegalMove.gameOver) { try won.mark(5, as: .circle) }
        #expect(won == before)
    }

    @Test("random games end after at most nine moves, and survive their text at each step")
    func random() throws {
        for _ in 0..<2000 {
            var game = TicTacToe()
            var count = 0
            while game.outcome == nil {
                let free = game.cells.indices.filter { game.cells[$0] == nil }
                try game.mark(try #require(free.randomElement()), as: game.next)
                count += 1
                #expect(TicTacToe("\(game)") == game)
                let decoded = try JSONDecoder().decode(TicTacToe.self, from: try JSONEncoder().encode(game))
                #expect(decoded == game)
            }
            #expect(count <= 9)
        }
    }

    @Test(
        "other texts are not games",
        arguments: ["", "x:", "x:........", "x:..........", ".:.........", "x-.........", "x:....z...."])
    func invalid(text: String) { #expect(TicTacToe(text) == nil) }
}
