public import BET

/// The rules of the mathematical duel for two.
///
/// In each round one player, the maker, puts together an equation from a selection of tokens. Its value is the puzzle. The
/// other, the solver, has the same selection, and comes as close to the value as possible. A match has two rounds, so both
/// have made once and solved once. Points are shown only at the end.
public struct Duel: Sendable, Hashable, Codable {
    /// A violation of the rules.
    public enum IllegalEquation: Error, Sendable, Hashable {
        case notYourTurn
        /// The match has ended.
        case matchOver
        /// A token that is not in the selection, or not as often.
        case notInSelection(String)
        /// The equation has no value: the code of the evaluator, and the index of the token.
        case invalid(String, at: Int)
    }

    /// The end of a match.
    public enum Ending: String, Sendable, Codable {
        /// Both rounds were played.
        case played
        /// A player has quit.
        case quit
    }

    /// A round.
    public struct Round: Sendable, Hashable, Codable {
        /// The tokens that both may use, each as often as it is here. Parentheses and commas are free.
        public internal(set) var selection: [String]
        /// The maker's equation and its value.
        public internal(set) var made: [String]?
        public internal(set) var target: Double?
        /// The solver's equation and its value.
        public internal(set) var solved: [String]?
        public internal(set) var value: Double?

        /// The solver's points; `nil` before the round is over.
        public var points: Int? {
            guard let target, let value else { return nil }
            return Duel.points(value, for: target)
        }
    }

    /// The players: the first makes the first round, the second one the second.
    public let players: [String]
    /// The tier of each player's tokens.
    public let tiers: [Dialect.Tier]
    /// The rounds that have begun.
    public private(set) var rounds: [Round]
    /// The player who has quit.
    public private(set) var quitter: String?
    /// The id of each player's last move, by which a repeated call is recognized.
    private var lastMoves: [String: String] = [:]

    /// A match that begins.
    ///
    /// - Parameters:
    ///   - tiers: of each player.
    ///   - toolbox: of the first player, who makes the first round.
    public init(
        players: [String], tiers: [Dialect.Tier], toolbox: [String],
        using generator: inout some RandomNumberGenerator
    ) {
        (self.players, self.tiers) = (players, tiers)
        rounds = [Round(selection: Self.selection(tiers[0], toolbox, using: &generator))]
    }

    // MARK: Selections

    /// The operators and functions that come up at a tier, beside those of the tiers before it.
    static let tokens: [Dialect.Tier: [String]] = [
        .basic: ["+", "-", "*", "/"], .powers: ["^", "%", "√"], .steps: ["++", "<", "‹"],
        .bits: ["AND", "OR", "floor", "ceil", "clamp"],
    ]
    private static let free: Set<String> = ["(", ")", ","]

    /// The operators and functions that come up at a tier, with those of the tiers before it.
    static func symbols(upTo last: Dialect.Tier) -> [String] {
        let all = Dialect.Tier.allCases
        return all.prefix(through: all.firstIndex(of: last) ?? 0).flatMap { tokens[$0] ?? [] }
    }

    /// Five numbers and five operators or functions of a tier and those before it, and all items of a toolbox.
    static func selection(
        _ tier: Dialect.Tier, _ toolbox: [String], using generator: inout some RandomNumberGenerator
    ) -> [String] {
        let symbols = symbols(upTo: tier)
        // There is always something that joins two numbers.
        var selection = [["+", "-", "*"].randomElement(using: &generator) ?? "+"]
        for _ in 0..<5 { selection.append(String(Int.random(in: 1...9, using: &generator))) }
        for _ in 0..<4 { selection.append(symbols.randomElement(using: &generator) ?? "+") }
        return selection + toolbox
    }

    // MARK: Moves

    /// The end of the match; `nil` while it lasts.
    public var ending: Ending? {
        if quitter != nil { return .quit }
        return rounds.count == 2 && rounds[1].value != nil ? .played : nil
    }

    /// The player whose turn it is; `nil` after the end.
    public var next: String? {
        guard ending == nil else { return nil }
        let maker = rounds.count - 1
        return players[rounds[maker].target == nil ? maker : 1 - maker]
    }

    /// The opponent of a player.
    public func opponent(of player: String) -> String { players[players[0] == player ? 1 : 0] }

    /// Plays an equation: makes the puzzle of a round, or solves it.
    ///
    /// - Parameters:
    ///   - id: the id of the move.
    ///   - toolbox: the tokens that the player owns now. The player who solves the first round makes the second one, and
    ///     has all of them in it.
    /// - Returns: whether the match has changed; `false` for the player's last move again.
    public mutating func play(
        _ equation: [String], by player: String, id: String, toolbox: [String],
        using generator: inout some RandomNumberGenerator
    ) throws(IllegalEquation) -> Bool {
        guard lastMoves[player] != id else { return false }
        guard ending == nil else { throw .matchOver }
        guard player == next else { throw .notYourTurn }
        let place = rounds.count - 1
        let value = try Self.value(of: equation, selection: rounds[place].selection)
        lastMoves[player] = id
        if rounds[place].target == nil {
            (rounds[place].made, rounds[place].target) = (equation, value)
        } else {
            (rounds[place].solved, rounds[place].value) = (equation, value)
            if place == 0 {
                rounds.append(Round(selection: Self.selection(tiers[1], toolbox, using: &generator)))
            }
        }
        return true
    }

    /// Ends the match.
    ///
    /// - Returns: whether the match has changed.
    public mutating func quit(_ player: String) -> Bool {
        guard ending == nil, players.contains(player) else { return false }
        quitter = player
        return true
    }

    /// The value of an equation that uses each token of a selection at most as often as it is there.
    public static func value(of equation: [String], selection: [String]) throws(IllegalEquation) -> Double {
        var left = selection
        for token in equation where !free.contains(token) {
            guard let place = left.firstIndex(of: token) else { throw .notInSelection(token) }
            left.remove(at: place)
        }
        do throws(ExpressionError) { return try ParsedExpression(equation, maxTokens: 200).value() } catch {
            throw .invalid(error.code.rawValue, at: error.index)
        }
    }

    // MARK: Points

    /// 100 for the exact value, half of them for each tenth by which it is missed, in relation to the greater of the value
    /// and 1.
    public static func points(_ value: Double, for target: Double) -> Int {
        let miss = (value - target).magnitude / max(target.magnitude, 1)
        // As a value it may be infinite: the difference of two large numbers.
        guard miss < 1 else { return 0 }
        var points = 100.0
        var left = miss
        while left >= 0.1 {
            points /= 2
            left -= 0.1
        }
        return Int((points * (1 - left * 5)).rounded())
    }

    /// The sum of the points of a player; `nil` before the end.
    public func points(of player: String) -> Int? {
        guard ending == .played, let place = players.firstIndex(of: player) else { return nil }
        // The first player solves the second round.
        return rounds[1 - place].points
    }

    /// By how much the IQ of each player changes with a match: more for a win against a greater IQ, as in the rating of
    /// Elo. A player who quits has lost.
    public func changes(of iqs: [Int]) -> [Int] {
        guard let ending else { return [0, 0] }
        let score: Double
        if ending == .quit {
            score = quitter == players[0] ? 0 : 1
        } else {
            let (first, second) = (points(of: players[0]) ?? 0, points(of: players[1]) ?? 0)
            score = first > second ? 1 : first < second ? 0 : 0.5
        }
        // A difference of 40 makes ten to one; this is its piecewise linear form, the same on every machine.
        let expected = min(max(0.5 + Double(iqs[0] - iqs[1]) / 80, 0.05), 0.95)
        let change = Int((10 * (score - expected)).rounded())
        return [change, -change]
    }
}

extension Dialect.Tier: Codable {}
