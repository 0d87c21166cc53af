/// An operator of a dialect: its position, how it binds, and what it computes.
public struct Operator: Sendable {
    /// The position of an operator.
    public enum Position: String, Sendable, CaseIterable {
        /// Before its operand, as in `- 1`.
        case prefix
        /// Between its two operands, as in `1 + 2`.
        case infix
        /// After its operand, as in `1 ++`.
        case postfix

        /// The number of operands of an operator in this position.
        public var operandCount: Int { self == .infix ? 2 : 1 }
    }

    /// The one of two operators of the same precedence that binds their common operand.
    public enum Associativity: String, Sendable, CaseIterable {
        /// The operator to the left: `1 - 2 - 3` is `(1 - 2) - 3`.
        case left
        /// The operator to the right: `2 ^ 3 ^ 2` is `2 ^ (3 ^ 2)`.
        case right
    }

    /// The position.
    public let position: Position

    /// The precedence: of two operators beside an operand, the one with the greater precedence
    /// binds it.
    public let precedence: Int

    /// The associativity. Between two operators of the same precedence, the one to the right
    /// decides. That of a prefix operator has no effect, because no operand stands to the left of
    /// it.
    public let associativity: Associativity

    /// The computation from the operands, in their order from left to right.
    public let computation: Computation
}
