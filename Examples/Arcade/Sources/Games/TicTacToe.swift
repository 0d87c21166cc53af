/// The rules of tic-tac-toe: nine cells, and three marks in a row, a column or a diagonal win.
public struct TicTacToe: Sendable, Hashable {
    /// The mark of a player.
    public enum Mark: String, Sendable, Codable, CaseIterable {
        case cross
        case circle

        /// The mark of the opponent.
        public var other: Mark { self == .cross ? .circle : .cross }
    }

    /// The outcome of a game.
    public enum Outcome: Sendable, Hashable {
        /// Three in a line.
        case won(by: Mark, line: [Int])
        /// All cells are taken.
        case drawn
    }

    /// A move that the rules do not allow.
    public enum IllegalMove: Error, Sendable, Hashable {
        case notYourTurn
        case noSuchCell
        case cellTaken
        case gameOver
    }

    /// The cells by rows. `nil` is empty.
    public private(set) var cells: [Mark?]
    /// Whose turn it is, also when the game has ended.
    public private(set) var next: Mark

    /// A new game, in which cross begins.
    public init() { (cells, next) = (Array(repeating: nil, count: 9), .cross) }

    /// The eight lines that win.
    static let lines = [
        [0, 1, 2], [3, 4, 5], [6, 7, 8], [0, 3, 6], [1, 4, 7], [2, 5, 8], [0, 4, 8], [2, 4, 6],
    ]

    /// The outcome of the game; `nil` while it lasts.
    public var outcome: Outcome? {
        for line in Self.lines {
            if let mark = cells[line[0]], line.allSatisfy({ cells[$0] == mark }) { return .won(by: mark, line: line) }
        }
        return cells.contains(nil) ? nil : .drawn
    }

    /// Marks a cell, 0 to 8.
    public mutating func mark(_ cell: Int, as mark: Mark) throws(IllegalMove) {
        guard outcome == nil else { throw .gameOver }
        guard mark == next else { throw .notYourTurn }
        guard cells.indices.contains(cell) else { throw .noSuchCell }
        guard cells[cell] == nil else { throw .cellTaken }
        cells[cell] = mark
        next = mark.other
    }
}

/// As text: the mark of the next player, then the nine cells, as in `x:xo..o...x`.
extension TicTacToe: Codable, CustomStringConvertible {
    private static let letters: [Mark?: Character] = [.cross: "x", .circle: "o", nil: "."]

    public var description: String {
        String([Self.letters[next]!, ":"] + cells.map { Self.letters[$0]! })
    }

    /// `nil` if the text is none of a game.
    public init?(_ description: String) {
        let marks = Dictionary(uniqueKeysWithValues: Self.letters.map { ($1, $0) })
        let characters = Array(description)
        guard characters.count == 11, characters[1] == ":", case let next?? = marks[characters[0]] else { return nil }
        var cells: [Mark?] = []
        for character in characters.dropFirst(2) {
            guard let mark = marks[character] else { return nil }
            cells.append(mark)
        }
        (self.cells, self.next) = (cells, next)
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let game = TicTacToe(try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a game of tic-tac-toe")
        }
        self = game
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}
