public import BET

/// The state of a player between matches: the IQ and a toolbox.
public struct DuelPlayer: Sendable, Hashable, Codable {
    /// A violation of the rules.
    public enum IllegalTrade: Error, Sendable, Hashable {
        case noSuchItem
        /// The IQ that is missing.
        case tooExpensive(Int)
        case toolboxFull
        case noRecipe
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
    /// The item that each equation makes. The ingredients are kept.
    static let recipes: [[String]: String] = [
        ["x", "=", "x", "+", "1"]: "++", ["x", "=", "1", "+", "x"]: "++", ["x", "=", "x", "*", "x"]: "^2",
        ["x", "=", "x", "-", "x", "%", "1"]: "floor", ["x", "=", "2", "*", "x"]: "‹", ["x", "=", "x", "*", "2"]: "‹",
    ]

    /// Begins with 100.
    public private(set) var iq = 100
    /// The tokens that the player owns, which may come up in the rounds that the player makes.
    public private(set) var toolbox: [String] = []
    /// The ids of the latest trades and matches, by which a repeated one is recognized.
    private var done: [String] = []
    /// The last counted match against each opponent: there is one match of two players at a time. `nil` in documents that
    /// were stored without it.
    private var counted: [String: String]?

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

    /// Remembers an id, and returns whether it is new.
    private mutating func isNew(_ id: String) -> Bool {
        guard !done.contains(id) else { return false }
        done = done.suffix(63) + [id]
        return true
    }

    /// Buys an item.
    ///
    /// - Parameter id: the id of the trade.
    /// - Returns: whether the player has changed; `false` for the same trade again.
    public mutating func buy(_ item: String, id: String) throws(IllegalTrade) -> Bool {
        guard !done.contains(id) else { return false }
        guard let price = Self.prices[item] else { throw .noSuchItem }
        guard toolbox.count < Self.maxItems else { throw .toolboxFull }
        guard iq >= price else { throw .tooExpensive(price - iq) }
        _ = isNew(id)
        iq -= price
        toolbox.append(item)
        return true
    }

    /// Makes an item from an equation such as `x = x + 1`, which makes `++`. It costs nothing.
    ///
    /// - Returns: whether the player has changed; `false` for the same equation again.
    public mutating func craft(_ equation: [String], id: String) throws(IllegalTrade) -> Bool {
        guard !done.contains(id) else { return false }
        guard let item = Self.recipes[equation] else { throw .noRecipe }
        guard toolbox.count < Self.maxItems else { throw .toolboxFull }
        _ = isNew(id)
        toolbox.append(item)
        return true
    }

    /// Counts the end of a match.
    ///
    /// - Returns: whether the player has changed; `false` for the same match again.
    public mutating func count(_ change: Int, of match: String, against opponent: String) -> Bool {
        guard counted?[opponent] != match, isNew("match:" + match) else { return false }
        counted = (counted ?? [:]).merging([opponent: match]) { $1 }
        iq = max(0, iq + change)
        return true
    }
}
