import BET

/// An expression as a tree, which has a value without any parsing.
indirect enum Tree {
    case number(String)
    case apply(Vocabulary.Symbol, [Tree])
    case call(String, computes: String, [Tree])

    /// Returns a random tree.
    static func random(depth: Int, of vocabulary: Vocabulary, using random: inout RandomSource) -> Tree {
        if depth == 0 || random.isHit(percent: 15) { return .number(randomNumber(using: &random)) }
        if random.isHit(percent: 15) {
            let (name, computes) = random.pick(vocabulary.functions.sorted { $0.key < $1.key })
            let arguments = (0..<computationsByName[computes]!.argumentCount).map { _ in
                Tree.random(depth: depth - 1, of: vocabulary, using: &random)
            }
            return .call(name, computes: computes, arguments)
        }
        let position = random.pick([.infix, .infix, .infix, .prefix, .postfix] as [Operator.Position])
        let operands = (0..<position.operandCount).map { _ in
            Tree.random(depth: depth - 1, of: vocabulary, using: &random)
        }
        return .apply(random.pick(vocabulary.operators(position)), operands)
    }

    /// Returns a number as a token: mostly a small integer, sometimes a fraction or an extreme.
    static func randomNumber(using random: inout RandomSource) -> String {
        switch Int.random(in: 0..<10, using: &random) {
        case 0..<6: "\(Int.random(in: 0...12, using: &random))"
        case 6: "\(Int.random(in: 0...99, using: &random)).\(Int.random(in: 0...999, using: &random))"
        case 7: "\(UInt64.random(in: 0 ... 1 << 54, using: &random))"
        case 8:
            // Any finite number that is not negative.
            "\(Double(bitPattern: UInt64.random(in: 0..<Double.infinity.bitPattern, using: &random)))"
        default:
            random.pick([
                "0.1", "0.5", "1e-5", "1e308", "5e-324", "1e999", "1023", "2147483648", "4294967296",
                "9007199254740991", "9007199254740992", "9007199136250224", "12345678901234567890",
            ])
        }
    }
}

/// The tokens of a tree, and its value or the error with the place that must result.
struct WrittenTree {
    private(set) var tokens: [String] = []
    private(set) var outcome = Outcome()
    /// The place of the first number that is too large, which is found before anything is computed.
    private var overflow: Int?

    /// Writes a tree with the parentheses that its precedences require.
    init(_ tree: Tree) {
        let result = append(tree)
        if let overflow {
            outcome.error = "overflow"
            outcome.at = overflow
            return
        }
        switch result {
        case .success(let value): outcome.bits = value.hexadecimalBits
        case .failure(let problem):
            outcome.error = problem.code
            outcome.at = problem.index
        }
    }

    private struct Problem: Error {
        let code: String
        let index: Int
    }

    private mutating func append(_ tree: Tree) -> Result<Double, Problem> {
        switch tree {
        case .number(let text):
            let number = Double(text)!
            if number.isInfinite, overflow == nil { overflow = tokens.count }
            tokens.append(text)
            return .success(number)
        case .call(let name, let computes, let arguments):
            let index = tokens.count
            tokens += [name, "("]
            var values: [Result<Double, Problem>] = []
            for (number, argument) in arguments.enumerated() {
                if number > 0 { tokens.append(",") }
                values.append(append(argument))
            }
            tokens.append(")")
            return compute(computes, values, at: index)
        case .apply(let symbol, let operands):
            var values: [Result<Double, Problem>] = []
            if symbol.position != .prefix { values.append(append(operands[0], leftOf: symbol)) }
            let index = tokens.count
            tokens.append(symbol.name)
            if symbol.position != .postfix { values.append(append(operands.last!, rightOf: symbol)) }
            return compute(symbol.computes, values, at: index)
        }
    }

    /// Of two operators with the same precedence, the one to the right decides.
    private mutating func append(_ operand: Tree, leftOf symbol: Vocabulary.Symbol) -> Result<Double, Problem> {
        guard case .apply(let inner, _) = operand else { return append(operand) }
        let binds =
            inner.precedence > symbol.precedence
            || inner.precedence == symbol.precedence && symbol.associativity == .left
        return binds ? append(operand) : appendInParentheses(operand)
    }

    private mutating func append(_ operand: Tree, rightOf symbol: Vocabulary.Symbol) -> Result<Double, Problem> {
        guard case .apply(let inner, _) = operand else { return append(operand) }
        let binds =
            inner.precedence > symbol.precedence
            || inner.precedence == symbol.precedence && (inner.position == .prefix || inner.associativity == .right)
        return binds ? append(operand) : appendInParentheses(operand)
    }

    private mutating func appendInParentheses(_ tree: Tree) -> Result<Double, Problem> {
        tokens.append("(")
        defer { tokens.append(")") }
        return append(tree)
    }

    private func compute(
        _ computes: String, _ values: [Result<Double, Problem>], at index: Int
    ) -> Result<Double, Problem> {
        if overflow != nil { return .success(0) }
        do throws(ArithmeticError) {
            var arguments: [Double] = []
            for value in values {
                guard case .success(let number) = value else { return value }
                arguments.append(number)
            }
            return .success(try computationsByName[computes]!.value(of: arguments))
        } catch {
            return .failure(Problem(code: error.rawValue, index: index))
        }
    }
}
