public import BET

/// The state of a player between matches: the IQ and a toolbox.
public struct DuelPlayer: Sendable, Hashable, Codable {
    /// A violation of the rules.
    public enum IllegalTrade: Error, Sendable, Hashable, CustomStringConvertible {
        case noSuchItem
        /// The IQ that is missing.
        case tooExpensive(Int)
        case toolboxFull
        case noRecipe
        /// An operator of the equation that the player does not have.
        case missingIngredient(String)

        /// The case, with its value.
        public var description: String {
            switch self {
            case .noSuchItem: "noSuchItem"
            case .tooExpensive(let missing): "tooExpensive \(missing)"
            case .toolboxFull: "toolboxFull"
            case .noRecipe: "noRecipe"
            case .missingIngredient(let token): "missingIngredient \(token)"
            }
        }
    }

    /// The last match against an opponent.
    private struct LastMatch: Sendable, Hashable, Codable {
        var number: Int
        var isOver = false
    }

    /// The greatest number of items in a toolbox.
    public static let maxItems = 30
    /// The items of the shop, with their prices in IQ.
    public static let prices: [String: Int] = [
        "10": 2, "100": 3, "0.5": 2, "^": 4, "%": 3, "√": 4, "++": 3, "<": 2, "‹": 4, "AND": 3, "OR": 3, "floor": 3,
        "ceil": 3, "clamp": 4, "^2": 5, "isqrt": 5,
    ]
    /// An example for each item of the shop: an expression with its value, and a remark if it needs one.
    public static let tutorial: [String: String] = [
        "^": "2 ^ 3 is 8", "%": "7 % 4 is 3: the remainder", "√": "√ 9 is 3", "++": "++ 4 is 5: also after a number",
        "<": "1 < 2 is 1: or 0 if it is not less", "‹": "1 ‹ 3 is 8: shifted to the left",
        "AND": "6 AND 3 is 2: bit by bit",
        "OR": "6 OR 3 is 7: bit by bit", "floor": "floor ( 2.5 ) is 2", "ceil": "ceil ( 2.5 ) is 3",
        "clamp": "clamp ( 9 , 1 , 5 ) is 5: the value between a least and a greatest one", "^2": "3 ^2 is 9",
        "isqrt": "isqrt ( 10 ) is 3: the whole part of the root",
    ]
    /// The greatest number of matches that have not ended, with as many opponents.
    public static let maxUnfinished = 50
    /// The number of ended matches that are kept.
    static let maxEnded = 50
    /// The item that each equation makes. The ingredients are kept.
    static let recipes: [[String]: String] = [
        ["x", "=", "x", "+", "1"]: "++", ["x", "=", "1", "+", "x"]: "++", ["x", "=", "x", "*", "x"]: "^2",
        ["x", "=", "x", "-", "x", "%", "1"]: "floor", ["x", "=", "2", "*", "x"]: "‹", ["x", "=", "x", "*", "2"]: "‹",
    ]

    /// Begins with 100.
    public private(set) var iq = 100
    /// Identifies the player, because another one can use the name later. `nil` before the first match.
    public var id: String?
    /// The tokens that the player owns, which come up in the rounds that the player makes.
    public private(set) var toolbox: [String] = []
    /// The ids of the latest trades, by which a repeated one is recognized.
    private var trades: [String] = []
    /// The last match against each opponent: there is one match of two players at a time.
    private var matches: [String: LastMatch] = [:]
    /// The greatest number of an ended match that is no longer kept.
    private var forgotten = 0

    /// A player who has not played.
    public init() {}

    /// The tier of the tokens that come up for a player with this IQ.
    public var tier: Dialect.Tier {
        switch iq {
        case ..<110: .basic
        case ..<130: .powers
        case ..<150: .steps
        default: .bits
        }
    }

    // MARK: Trades

    private mutating func add(_ item: String, id: String) {
        trades = trades.suffix(63) + [id]
        toolbox.append(item)
    }

    /// Buys an item.
    ///
    /// - Parameter id: the id of the trade.
    /// - Returns: whether the player has changed; `false` for the same trade again.
    public mutating func buy(_ item: String, id: String) throws(IllegalTrade) -> Bool {
        guard !trades.contains(id) else { return false }
        guard let price = Self.prices[item] else { throw .noSuchItem }
        guard toolbox.count < Self.maxItems else { throw .toolboxFull }
        guard iq >= price else { throw .tooExpensive(price - iq) }
        iq -= price
        add(item, id: id)
        return true
    }

    /// Makes an item from an equation such as `x = x + 1`, which makes `++`. It costs nothing, but the player needs the
    /// operators of the equation: those that come up at the player's tier, or are in the toolbox.
    ///
    /// - Returns: whether the player has changed; `false` for the same equation again.
    public mutating func craft(_ equation: [String], id: String) throws(IllegalTrade) -> Bool {
        guard !trades.contains(id) else { return false }
        guard let item = Self.recipes[equation] else { throw .noRecipe }
        let owned = Duel.symbols(upTo: tier) + toolbox
        for token in equation where Dialect.standard.isOperator(token) && !owned.contains(token) {
            throw .missingIngredient(token)
        }
        guard toolbox.count < Self.maxItems else { throw .toolboxFull }
        add(item, id: id)
        return true
    }

    // MARK: Matches

    /// The greatest number of a match of this player.
    public var lastMatch: Int { matches.values.map(\.number).reduce(forgotten, max) }

    /// The opponents of the matches that are kept: first those of unfinished matches, and then the latest ones.
    public var opponents: [String] {
        matches.sorted { ($0.value.isOver ? 1 : 0, -$0.value.number) < ($1.value.isOver ? 1 : 0, -$1.value.number) }
            .map(\.key)
    }

    /// The opponents of the matches that have not ended.
    public var unfinished: [String] { opponents.filter { matches[$0]?.isOver == false } }

    /// Whether a match is later than all that this player is known to have had with the opponent. Of a match that is no
    /// longer kept, only that its number is at most `forgotten` is known.
    private func isNew(_ number: Int, against opponent: String) -> Bool {
        number > matches[opponent]?.number ?? forgotten
    }

    /// Records that a match has begun.
    ///
    /// - Parameter number: of the match: see ``DuelMatch/number``.
    /// - Returns: whether the player has changed; `false` for the same match again.
    public mutating func begin(_ number: Int, against opponent: String) -> Bool {
        guard isNew(number, against: opponent) else { return false }
        matches[opponent] = LastMatch(number: number)
        return true
    }

    /// Counts the end of a match.
    ///
    /// - Returns: whether the player has changed; `false` for the same match again.
    public mutating func count(_ change: Int, of number: Int, against opponent: String) -> Bool {
        let last = matches[opponent]
        let isUnfinished = last?.number == number && last?.isOver == false
        guard isNew(number, against: opponent) || isUnfinished else { return false }
        matches[opponent] = LastMatch(number: number, isOver: true)
        iq = max(0, iq + change)
        let ended = matches.filter(\.value.isOver)
        if ended.count > Self.maxEnded, let oldest = ended.min(by: { $0.value.number < $1.value.number }) {
            matches[oldest.key] = nil
            forgotten = max(forgotten, oldest.value.number)
        }
        return true
    }
}
