/// A valid expression, ready to be evaluated.
///
/// ```swift
/// try ParsedExpression(["2", "^", "3", "^", "2"]).value()                // 512
/// try ParsedExpression(["isqrt", "(", "4", ")", "+", "1"]).value()       // 3
/// try ParsedExpression(["1", "+"])  // throws operandExpected at token 2, the end
/// ```
///
/// A token is a number, a parenthesis, a comma, or the name of an operator or a function;
/// ``Tokenizer`` splits a text into tokens. A number consists of digits with an optional fraction
/// and an optional exponent, and has no sign: a minus is the prefix operator of the dialect.
///
/// Values are finite `Double` numbers, never NaN, an infinity or negative zero. A computation that
/// would result in one of the first two is an error at its operator. The same tokens have the same
/// value in `bet.js`, bit for bit, or the same error at the same place.
///
/// Parsing and evaluation take time and memory proportional to the number of tokens. Neither uses
/// recursion, so the depth of parentheses is bounded by the number of tokens and not by the stack
/// of the thread.
public struct ParsedExpression: Sendable {
    /// The maximum number of tokens unless the caller states another.
    public static let maxTokens = 10_000

    private let tokens: [String]
    private let program: [Instruction]

    /// Parses an expression.
    ///
    /// - Parameters:
    ///   - tokens: the expression.
    ///   - dialect: the operators and functions that the expression may use.
    ///   - maxTokens: the maximum number of tokens, not negative.
    /// - Throws: `ExpressionError` for the first error. `overflow` if a number is too large for a
    ///   `Double`, and none of the other three codes of ``ArithmeticError``.
    public init(
        _ tokens: [String], in dialect: Dialect = .standard, maxTokens: Int = ParsedExpression.maxTokens
    ) throws(ExpressionError) {
        precondition(maxTokens >= 0, "maxTokens is \(maxTokens); it must not be negative")
        guard tokens.count <= maxTokens else { throw ExpressionError(.tooLong, at: maxTokens, of: tokens) }
        var parser = Parser(tokens: tokens, dialect: dialect)
        program = try parser.parse()
        self.tokens = tokens
    }

    /// Evaluates the expression.
    ///
    /// - Throws: `ExpressionError` at the first operator or function without a value, with the code
    ///   of its ``ArithmeticError``. Operands are evaluated from left to right, and before their
    ///   operator.
    public func value() throws(ExpressionError) -> Double {
        var values: [Double] = []
        for instruction in program {
            switch instruction {
            case .push(let number): values.append(number)
            case .compute(let computation, let index):
                let arguments = Array(values.suffix(computation.argumentCount))
                values.removeLast(computation.argumentCount)
                do throws(ArithmeticError) {
                    values.append(try computation.value(of: arguments))
                } catch {
                    throw ExpressionError(.init(error), at: index, of: tokens)
                }
            }
        }
        return values[0]
    }
}

/// A step of an evaluation on a stack of values.
enum Instruction: Sendable {
    /// Pushes a number.
    case push(Double)
    /// Replaces the arguments at the top of the stack by their result. The index is that of the
    /// operator's or function's token.
    case compute(Computation, Int)
}
