import BET
import Testing

/// The table of cases, which `Tests/Web/cases.test.js` evaluates in JavaScript.
@Suite("The table of cases")
struct TableTests {
    @Test("a case has the value, or the error and the place, of the table", arguments: Case.table)
    func evaluate(_ testCase: Case) {
        var outcome = testCase.run()
        var expected = Outcome(error: testCase.error, at: testCase.at, refused: testCase.refused)
        expected.bits = testCase.value?.hexadecimalBits
        if testCase.offsets != nil {
            expected.tokens = testCase.tokens
            expected.offsets = testCase.offsets
        }
        // The words of an error are compared with those in JavaScript, see RandomTests.
        outcome.message = nil
        #expect(outcome == expected)
    }

    @Test("each case of the table expects exactly one thing")
    func isComplete() {
        for testCase in Case.table {
            let expectations = [testCase.value != nil, testCase.error != nil, testCase.refused != nil]
            #expect(expectations.count(where: \.self) == 1, "\(testCase.testDescription)")
            #expect((testCase.error == nil) == (testCase.at == nil), "\(testCase.testDescription)")
            #expect((testCase.text == nil) == (testCase.offsets == nil), "\(testCase.testDescription)")
        }
        #expect(Case.table.count >= 150)
    }

    @Test("the table has every code of an error")
    func hasEveryCode() {
        #expect(Set(Case.table.compactMap(\.error)) == Set(ExpressionError.Code.allCases.map(\.rawValue)))
        #expect(Set(Case.table.compactMap(\.refused)) == Set(DefinitionError.Code.allCases.map(\.rawValue)))
    }

    @Test("an arithmetic error has the same code as an error of an expression")
    func arithmeticCodes() {
        for error in ArithmeticError.allCases {
            #expect(ExpressionError.Code(rawValue: error.rawValue) != nil)
        }
    }
}
