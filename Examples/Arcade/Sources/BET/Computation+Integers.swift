// The computations that need integers as operands.
extension Computation {
    /// The first number to the power of the second, which must be an integer.
    ///
    /// `integerRequired` for another exponent: no standard specifies the rounding of `pow`, and
    /// libraries differ. The power is computed by squaring and multiplying, from the lowest bit of
    /// the exponent to the highest. It is exact if the first number is an integer and the power is
    /// at most 2^53 in magnitude; otherwise the rounding errors of the multiplications add up.
    ///
    /// A power with a negative exponent is the reciprocal of the positive power, thus 0 if that is
    /// too large for a `Double`. 0^0 is 1. A negative power of 0 is `divisionByZero`.
    public static let power = Computation(2) { arguments throws(ArithmeticError) in
        let exponent = arguments[1]
        guard exponent.rounded(.down) == exponent else { throw .integerRequired }
        guard exponent >= 0 || arguments[0] != 0 else { throw .divisionByZero }
        var result = 1.0
        var base = arguments[0]
        var remaining = exponent.magnitude
        while remaining > 0 {
            if remaining.truncatingRemainder(dividingBy: 2) == 1 { result *= base }
            remaining = (remaining / 2).rounded(.down)
            base *= base
        }
        guard exponent < 0 else { return result }
        // The power of a small number underflows to 0 where its reciprocal is too large for a Double.
        guard result != 0 else { throw .overflow }
        return 1 / result
    }

    /// The largest integer whose square is not greater than the number.
    ///
    /// `integerRequired` if the number is not an integer from -(2^53 - 1) to 2^53 - 1;
    /// `undefinedValue` if it is negative.
    public static let integerSquareRoot = Computation(1) { arguments throws(ArithmeticError) in
        let number = try safeInteger(arguments[0])
        guard number >= 0 else { throw .undefinedValue }
        let root = arguments[0].squareRoot().rounded(.down)
        // The square root of k² - 1 is rounded up to k when k is above 2^26.
        return root * root > arguments[0] ? root - 1 : root
    }

    /// The first number times 2 to the power of the second.
    ///
    /// `integerRequired` unless the first is an integer from -(2^53 - 1) to 2^53 - 1 and the second
    /// one from 0 to 1023.
    public static let shiftLeft = Computation(2) { arguments throws(ArithmeticError) in
        _ = try safeInteger(arguments[0])
        guard let count = Int(exactly: arguments[1]), 0...1023 ~= count else { throw .integerRequired }
        return arguments[0] * Double(sign: .plus, exponent: count, significand: 1)
    }

    /// The bits that are set in both integers, as in two's complement.
    ///
    /// `integerRequired` unless both are integers from -(2^53 - 1) to 2^53 - 1.
    public static let bitwiseAnd = Computation(2) { arguments throws(ArithmeticError) in
        Double(try safeInteger(arguments[0]) & safeInteger(arguments[1]))
    }

    /// The bits that are set in one of the integers or in both, as in two's complement.
    ///
    /// `integerRequired` unless both are integers from -(2^53 - 1) to 2^53 - 1.
    public static let bitwiseOr = Computation(2) { arguments throws(ArithmeticError) in
        Double(try safeInteger(arguments[0]) | safeInteger(arguments[1]))
    }

    /// Returns an integer in the range in which every integer is a `Double` and no other number
    /// rounds to one.
    private static func safeInteger(_ number: Double) throws(ArithmeticError) -> Int64 {
        guard let integer = Int64(exactly: number), integer.magnitude < 1 << 53 else { throw .integerRequired }
        return integer
    }
}
