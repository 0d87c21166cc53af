extension Dialect {
    /// The tiers of operators and functions, each with those of the tiers before it.
    public enum Tier: String, Sendable, CaseIterable {
        /// `+ - * /`, and `-` as a prefix.
        case basic
        /// `^` (power), `%` (remainder) and `√` (a prefix).
        case powers
        /// `++` (plus 1, as a prefix and as a postfix), `<` (1 if less, otherwise 0) and `‹` (shift
        /// left).
        case steps
        /// `AND` and `OR` (bitwise), `floor(x)`, `ceil(x)` and `clamp(x, low, high)`.
        case bits
    }

    /// All tiers, `^2` (a postfix, the square) and `isqrt(x)` (the integer square root).
    ///
    /// The operators by precedence, the lowest first:
    ///
    /// | precedence | operators | associativity |
    /// |---|---|---|
    /// | 1 | `OR` | left |
    /// | 2 | `AND` | left |
    /// | 3 | `<` | left |
    /// | 4 | `‹` | left |
    /// | 5 | `+` `-` | left |
    /// | 6 | `*` `/` `%` | left |
    /// | 7 | the prefix operators `-` `√` `++` | |
    /// | 8 | `^` | right |
    /// | 9 | the postfix operators `++` `^2` | left |
    public static let standard = built { dialect throws(DefinitionError) in
        for tier in Tier.allCases { try dialect.add(tier) }
        try dialect.defineOperator("^2", .postfix, precedence: 9, .square)
        try dialect.defineFunction("isqrt", .integerSquareRoot)
    }

    /// Returns the dialect with the operators and functions of a tier and of the tiers before it.
    public static func upTo(_ last: Tier) -> Dialect {
        built { dialect throws(DefinitionError) in
            for tier in Tier.allCases {
                try dialect.add(tier)
                if tier == last { return }
            }
        }
    }

    private static func built(_ build: (inout Dialect) throws(DefinitionError) -> Void) -> Dialect {
        var dialect = Dialect()
        do throws(DefinitionError) {
            try build(&dialect)
        } catch {
            preconditionFailure("\(error)")  // the definitions of this file are constant
        }
        return dialect
    }

    private mutating func add(_ tier: Tier) throws(DefinitionError) {
        switch tier {
        case .basic:
            try defineOperator("+", .infix, precedence: 5, .add)
            try defineOperator("-", .infix, precedence: 5, .subtract)
            try defineOperator("*", .infix, precedence: 6, .multiply)
            try defineOperator("/", .infix, precedence: 6, .divide)
            try defineOperator("-", .prefix, precedence: 7, .negate)
        case .powers:
            try defineOperator("^", .infix, precedence: 8, associativity: .right, .power)
            try defineOperator("%", .infix, precedence: 6, .remainder)
            try defineOperator("√", .prefix, precedence: 7, .squareRoot)
        case .steps:
            try defineOperator("++", .prefix, precedence: 7, .increment)
            try defineOperator("++", .postfix, precedence: 9, .increment)
            try defineOperator("<", .infix, precedence: 3, .isLess)
            try defineOperator("‹", .infix, precedence: 4, .shiftLeft)
        case .bits:
            try defineOperator("AND", .infix, precedence: 2, .bitwiseAnd)
            try defineOperator("OR", .infix, precedence: 1, .bitwiseOr)
            try defineFunction("floor", .floor)
            try defineFunction("ceil", .ceiling)
            try defineFunction("clamp", .clamp)
        }
    }
}
