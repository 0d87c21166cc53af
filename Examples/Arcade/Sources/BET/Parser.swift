/// Translates tokens into a program for a stack of values, with Dijkstra's shunting-yard algorithm.
///
/// At each token either an operand must begin or an operator must follow an operand. This state
/// distinguishes a prefix operator from an infix or postfix operator with the same name, and
/// detects every invalid order of tokens.
struct Parser {
    /// An opening parenthesis that is not closed yet.
    private struct Group {
        let index: Int
        /// The function whose arguments the parenthesis encloses. Its name is the token before the
        /// parenthesis.
        let function: Computation?
        var commas = 0
        /// The number of pending operators outside of the parenthesis.
        let pendingOutside: Int
    }

    private let tokens: [String]
    private let dialect: Dialect
    private var program: [Instruction] = []
    /// The operators to the left whose right operand is not complete.
    private var pending: [(symbol: Operator, index: Int)] = []
    private var groups: [Group] = []
    private var expectsOperand = true

    init(tokens: [String], dialect: Dialect) {
        self.tokens = tokens
        self.dialect = dialect
    }

    /// Returns the program of the whole expression.
    mutating func parse() throws(ExpressionError) -> [Instruction] {
        var index = 0
        while index < tokens.count {
            switch tokens[index] {
            case "(": try open(at: index, of: nil)
            case ")": try close(at: index)
            case ",": try nextArgument(at: index)
            default:
                if let definition = dialect[tokens[index]] {
                    if let function = definition.function {
                        index = try call(function, at: index)
                    } else {
                        try parse(definition, at: index)
                    }
                } else {
                    try parseNumber(at: index)
                }
            }
            index += 1
        }
        if let group = groups.last { throw error(.unclosedParenthesis, at: group.index) }
        guard !expectsOperand else { throw error(.operandExpected, at: index) }
        applyPending()
        return program
    }

    private mutating func parseNumber(at index: Int) throws(ExpressionError) {
        guard let number = NumberLiteral.value(of: tokens[index]) else {
            let isNumber = tokens[index].unicodeScalars.first?.isDigit ?? false
            throw error(isNumber ? .invalidNumber : .unknownToken, at: index)
        }
        guard expectsOperand else { throw error(.operatorExpected, at: index) }
        guard number.isFinite else { throw error(.overflow, at: index) }
        program.append(.push(number))
        expectsOperand = false
    }

    private mutating func parse(_ definition: Dialect.Definition, at index: Int) throws(ExpressionError) {
        if expectsOperand {
            guard let symbol = definition.prefix else { throw error(.operandExpected, at: index) }
            pending.append((symbol, index))
            return
        }
        guard let symbol = definition.afterOperand else { throw error(.operatorExpected, at: index) }
        // The operand to the left belongs to the operators that bind it more strongly than this one.
        applyPending { left in
            left.precedence > symbol.precedence
                || left.precedence == symbol.precedence && symbol.associativity == .left
        }
        if symbol.position == .postfix {
            program.append(.compute(symbol.computation, index))
        } else {
            pending.append((symbol, index))
            expectsOperand = true
        }
    }

    /// Begins the arguments of a function. Returns the index of the parenthesis after its name.
    private mutating func call(_ function: Computation, at index: Int) throws(ExpressionError) -> Int {
        guard expectsOperand else { throw error(.operatorExpected, at: index) }
        guard index + 1 < tokens.count, tokens[index + 1] == "(" else { throw error(.argumentsExpected, at: index) }
        try open(at: index + 1, of: function)
        return index + 1
    }

    private mutating func open(at index: Int, of function: Computation?) throws(ExpressionError) {
        guard expectsOperand else { throw error(.operatorExpected, at: index) }
        groups.append(Group(index: index, function: function, pendingOutside: pending.count))
    }

    private mutating func nextArgument(at index: Int) throws(ExpressionError) {
        guard groups.last?.function != nil else { throw error(.misplacedComma, at: index) }
        guard !expectsOperand else { throw error(.operandExpected, at: index) }
        applyPending()
        groups[groups.count - 1].commas += 1
        expectsOperand = true
    }

    private mutating func close(at index: Int) throws(ExpressionError) {
        guard let group = groups.last else { throw error(.unopenedParenthesis, at: index) }
        let hasNoArguments = group.function != nil && index == group.index + 1
        guard !expectsOperand || hasNoArguments else { throw error(.operandExpected, at: index) }
        applyPending()
        groups.removeLast()
        expectsOperand = false
        guard let function = group.function else { return }
        let name = group.index - 1
        let count = hasNoArguments ? 0 : group.commas + 1
        guard count == function.argumentCount else {
            throw ExpressionError(
                .wrongArgumentCount, at: name, of: tokens,
                reason: "expected \(function.argumentCount) arguments, found \(count)")
        }
        program.append(.compute(function, name))
    }

    /// Appends the pending operators within the innermost parenthesis to the program, as long as a
    /// condition holds.
    private mutating func applyPending(while condition: (Operator) -> Bool = { _ in true }) {
        let outside = groups.last?.pendingOutside ?? 0
        while pending.count > outside, let last = pending.last, condition(last.symbol) {
            program.append(.compute(last.symbol.computation, last.index))
            pending.removeLast()
        }
    }

    private func error(_ code: ExpressionError.Code, at index: Int) -> ExpressionError {
        ExpressionError(code, at: index, of: tokens)
    }
}
