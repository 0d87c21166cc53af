// The built-in computations. An underflow is not an error: the result is subnormal or 0, as IEEE 754 rounds it.
extension Computation {
    /// The sum of two numbers.
    public static let add = Computation(2) { $0[0] + $0[1] }

    /// The difference of two numbers.
    public static let subtract = Computation(2) { $0[0] - $0[1] }

    /// The product of two numbers.
    public static let multiply = Computation(2) { $0[0] * $0[1] }

    /// The quotient of two numbers; `divisionByZero` if the second is 0.
    public static let divide = Computation(2) { arguments throws(ArithmeticError) in
        guard arguments[1] != 0 else { throw .divisionByZero }
        return arguments[0] / arguments[1]
    }

    /// The exact remainder of the division truncated toward zero, with the sign of the first
    /// number; `divisionByZero` if the second is 0.
    ///
    /// The numbers need not be integers: the remainder of 5.5 and 2 is 1.5.
    public static let remainder = Computation(2) { arguments throws(ArithmeticError) in
        guard arguments[1] != 0 else { throw .divisionByZero }
        return arguments[0].truncatingRemainder(dividingBy: arguments[1])
    }

    /// The number with the opposite sign.
    public static let negate = Computation(1) { -$0[0] }

    /// The number itself.
    public static let identity = Computation(1) { $0[0] }

    /// The number plus 1.
    public static let increment = Computation(1) { $0[0] + 1 }

    /// The product of the number with itself.
    public static let square = Computation(1) { $0[0] * $0[0] }

    /// The square root; `undefinedValue` for a negative number.
    public static let squareRoot = Computation(1) { $0[0].squareRoot() }

    /// The largest integer that is not greater than the number.
    public static let floor = Computation(1) { $0[0].rounded(.down) }

    /// The smallest integer that is not less than the number.
    public static let ceiling = Computation(1) { $0[0].rounded(.up) }

    /// 1 if the first number is less than the second, and otherwise 0.
    public static let isLess = Computation(2) { $0[0] < $0[1] ? 1 : 0 }

    /// The first number, or the bound that it exceeds: the second is the lower bound, the third the
    /// upper; `undefinedValue` if the lower bound is greater than the upper.
    public static let clamp = Computation(3) { arguments throws(ArithmeticError) in
        guard arguments[1] <= arguments[2] else { throw .undefinedValue }
        if arguments[0] < arguments[1] { return arguments[1] }
        return arguments[0] > arguments[2] ? arguments[2] : arguments[0]
    }

    /// The computations of this file and of the files beside it, by the names of their properties,
    /// for definitions that are stored as data. JavaScript uses the same names.
    public static let builtIn: [String: Computation] = [
        "add": .add, "subtract": .subtract, "multiply": .multiply, "divide": .divide, "remainder": .remainder,
        "negate": .negate, "identity": .identity, "increment": .increment, "square": .square,
        "squareRoot": .squareRoot, "floor": .floor, "ceiling": .ceiling, "isLess": .isLess, "clamp": .clamp,
        "power": .power, "integerSquareRoot": .integerSquareRoot, "shiftLeft": .shiftLeft,
        "bitwiseAnd": .bitwiseAnd, "bitwiseOr": .bitwiseOr,
    ]
}
