/// The reason why an expression is invalid or has no value, and the token that is the place.
public struct ExpressionError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kinds of errors. The place of each is named in parentheses.
    public enum Code: String, Sendable, CaseIterable {
        /// The expression has more tokens than allowed (the first token too many).
        case tooLong
        /// A token is neither a number nor a name of the dialect (the token).
        case unknownToken
        /// A token begins with a digit and is not a number, or has more digits than a number may
        /// have (the token).
        case invalidNumber
        /// Something else stands where an operand must begin (that token, or the end).
        case operandExpected
        /// Something else stands where an operator must follow an operand (that token).
        case operatorExpected
        /// A parenthesis is never closed (the innermost such parenthesis).
        case unclosedParenthesis
        /// A closing parenthesis has no opening one (the closing parenthesis).
        case unopenedParenthesis
        /// A comma stands elsewhere than between the arguments of a function (the comma).
        case misplacedComma
        /// No parenthesis follows the name of a function (the name).
        case argumentsExpected
        /// A function has too many or too few arguments (the name).
        case wrongArgumentCount
        /// A division by zero (the operator or the name of the function).
        case divisionByZero
        /// A number is too large for a `Double` (the number, the operator or the name of the
        /// function).
        case overflow
        /// A result is not defined (the operator or the name of the function).
        case undefinedValue
        /// An operand is not an integer in the range of the computation (the operator or the name
        /// of the function).
        case integerRequired
    }

    /// The kind of error.
    public let code: Code

    /// The index of the token that is the place of the error; the number of tokens if the place is
    /// the end.
    public let index: Int

    /// The token at the place, shortened to 32 Unicode scalars; `nil` at the end.
    public let token: String?

    /// The error in words, without the place.
    public let reason: String

    /// The place and the error in words, for a player.
    public var description: String {
        "token \(index) (\(token.map { "\"\($0)\"" } ?? "the end")): \(reason)"
    }

    /// Creates an error at the token with an index in an array of tokens, or at its end.
    init(_ code: Code, at index: Int, of tokens: [String], reason: String? = nil) {
        self.code = code
        self.index = index
        let scalars = index < tokens.count ? tokens[index].unicodeScalars : nil
        self.token = scalars.map { String(String.UnicodeScalarView($0.prefix(32))) }
        self.reason = reason ?? code.reason
    }
}

extension ExpressionError.Code {
    init(_ error: ArithmeticError) {
        self =
            switch error {
            case .divisionByZero: .divisionByZero
            case .overflow: .overflow
            case .undefinedValue: .undefinedValue
            case .integerRequired: .integerRequired
            }
    }

    fileprivate var reason: String {
        switch self {
        case .tooLong: "the expression has too many tokens"
        case .unknownToken: "neither a number nor an operator or a function of this dialect"
        case .invalidNumber:
            """
            not a number; a number has at most \(NumberLiteral.maxSignificantDigits) significant digits, and its \
            exponent at most \(NumberLiteral.maxExponentDigits)
            """
        case .operandExpected: "expected a number, a function, a prefix operator or an opening parenthesis"
        case .operatorExpected: "expected an infix or postfix operator, a closing parenthesis, a comma or the end"
        case .unclosedParenthesis: "this parenthesis is never closed"
        case .unopenedParenthesis: "this parenthesis was never opened"
        case .misplacedComma: "a comma can only stand between the arguments of a function"
        case .argumentsExpected: "expected an opening parenthesis after the name of the function"
        case .wrongArgumentCount: "wrong number of arguments"
        case .divisionByZero: "division by zero"
        case .overflow: "the number is too large"
        case .undefinedValue: "the result is not defined"
        case .integerRequired: "requires an integer operand, or one in a smaller range"
        }
    }
}
