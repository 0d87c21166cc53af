import BET

/// The result of a case: the bits of the value or an error, and for a text its tokens and their
/// offsets.
struct Outcome: Codable, Equatable, Sendable {
    /// The value, as 16 hexadecimal digits.
    var bits: String?
    var error: String?
    var at: Int?
    var refused: String?
    /// The description of the error.
    var message: String?
    var tokens: [String]?
    var offsets: [Int]?
}

extension Double {
    /// The bits of the number, as 16 hexadecimal digits.
    var hexadecimalBits: String {
        let digits = String(bitPattern, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}

extension Case {
    /// Returns what results from the case.
    func run() -> Outcome {
        var outcome = Outcome()
        let dialect: Dialect
        do throws(DefinitionError) {
            dialect = try makeDialect()
        } catch {
            outcome.refused = error.code.rawValue
            outcome.message = error.description
            return outcome
        }
        if refused != nil { return outcome }
        var tokens = tokens ?? []
        if let text {
            let split = Tokenizer(dialect).tokens(of: text)
            tokens = split.map(\.text)
            outcome.tokens = tokens
            outcome.offsets = split.map(\.offset)
        } else if let runs {
            tokens = runs.flatMap { Array(repeatElement($0.tokens, count: $0.count).joined()) }
        }
        do throws(ExpressionError) {
            let maxTokens = maxTokens ?? ParsedExpression.maxTokens
            outcome.bits =
                try ParsedExpression(tokens, in: dialect, maxTokens: maxTokens).value().hexadecimalBits
        } catch {
            outcome.error = error.code.rawValue
            outcome.at = error.index
            outcome.message = error.description
        }
        return outcome
    }

    private func makeDialect() throws(DefinitionError) -> Dialect {
        var dialect: Dialect
        switch self.dialect {
        case nil: dialect = .standard
        case "empty": dialect = Dialect()
        case let name?:
            guard let tier = Dialect.Tier(rawValue: name) else { preconditionFailure("unknown dialect \(name)") }
            dialect = .upTo(tier)
        }
        for change in define ?? [] { try change.apply(to: &dialect) }
        return dialect
    }
}

extension Case.Change {
    fileprivate func apply(to dialect: inout Dialect) throws(DefinitionError) {
        if let remove { return dialect.remove(remove) }
        guard let computation = computes.flatMap({ computationsByName[$0] }) else {
            preconditionFailure("unknown computation \(computes ?? "")")
        }
        if let function { return try dialect.defineFunction(function, computation) }
        guard let name = `operator`, let position = position.flatMap(Operator.Position.init), let precedence else {
            preconditionFailure("incomplete definition \(self)")
        }
        let associativity = associativity.flatMap(Operator.Associativity.init) ?? .left
        try dialect.defineOperator(
            name, position, precedence: precedence, associativity: associativity, computation)
    }
}
