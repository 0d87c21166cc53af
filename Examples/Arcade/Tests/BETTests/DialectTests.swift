import BET
import Testing

/// Cases that the table cannot contain: the values of Swift, and computations of the caller's own.
@Suite("Dialects and expressions")
struct DialectTests {
    @Test("a function of the caller is computed")
    func customFunction() throws {
        var dialect = Dialect.standard
        try dialect.defineFunction("double", Computation(1) { 2 * $0[0] })
        try dialect.defineOperator("!=", .infix, precedence: 3, Computation(2) { $0[0] != $0[1] ? 1 : 0 })
        #expect(try ParsedExpression(["double", "(", "4", ")", "!=", "8"], in: dialect).value() == 0)
    }

    @Test("an expression keeps the definitions with which it was parsed")
    func parsedExpressionIsIndependent() throws {
        var dialect = Dialect.upTo(.basic)
        let expression = try ParsedExpression(["2", "+", "3"], in: dialect)
        try dialect.defineOperator("+", .infix, precedence: 5, .multiply)
        #expect(try expression.value() == 5)
        #expect(try ParsedExpression(["2", "+", "3"], in: dialect).value() == 6)
    }

    @Test("a refused definition leaves the dialect as it is")
    func refusedDefinition() throws {
        var dialect = Dialect.standard
        #expect(throws: DefinitionError.self) {
            try dialect.defineOperator("+", .postfix, precedence: 9, .square)
        }
        #expect(throws: DefinitionError.self) { try dialect.defineFunction("+", .square) }
        #expect(throws: DefinitionError.self) { try dialect.defineOperator("floor", .prefix, precedence: 9, .square) }
        #expect(try ParsedExpression(["1", "+", "floor", "(", "1", ")"], in: dialect).value() == 2)
    }

    @Test("a name is an operator, a function or neither")
    func kindsOfNames() {
        var dialect = Dialect.standard
        #expect(["+", "√", "^2", "AND"].allSatisfy { dialect.isOperator($0) && !dialect.isFunction($0) })
        #expect(["floor", "isqrt"].allSatisfy { dialect.isFunction($0) && !dialect.isOperator($0) })
        #expect(["(", "1", "x", ""].allSatisfy { !dialect.isFunction($0) && !dialect.isOperator($0) })
        dialect.remove("+")
        #expect(!dialect.isOperator("+"))
    }

    @Test("an error names the place and the token")
    func descriptions() {
        let wrongCount = #expect(throws: ExpressionError.self) {
            try ParsedExpression(["1", "+", "clamp", "(", "1", ")"])
        }
        #expect(wrongCount?.description == "token 2 (\"clamp\"): expected 3 arguments, found 1")
        let atEnd = #expect(throws: ExpressionError.self) { try ParsedExpression(["1", "+"]) }
        #expect(atEnd?.token == nil)
        #expect(atEnd?.description.hasPrefix("token 2 (the end): ") == true)
        let long = #expect(throws: ExpressionError.self) { try ParsedExpression([String(repeating: "x", count: 1000)]) }
        #expect(long?.token == String(repeating: "x", count: 32))
    }
}
