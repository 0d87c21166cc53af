/// The reason why a computation has no value.
public enum ArithmeticError: String, Error, Hashable, Sendable, CaseIterable {
    /// A division by zero, a remainder of one, or a negative power of zero.
    case divisionByZero
    /// A result whose magnitude is too large for a `Double`.
    case overflow
    /// Operands for which the result is not defined, such as the square root of a negative number.
    case undefinedValue
    /// An operand that is not an integer, or is outside of the range of integers that the
    /// computation supports.
    case integerRequired
}
