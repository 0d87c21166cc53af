import BET
import Testing

/// Properties of random expressions.
@Suite("Random expressions")
struct RandomTests {
    @Test("an expression has the value of the tree from which it was written")
    func trees() {
        var random = RandomSource(seed: RandomSource.seed())
        var values = 0
        for _ in 0..<10_000 {
            let vocabulary = Vocabulary(using: &random)
            let depth = Int.random(in: 0...6, using: &random)
            let written = WrittenTree(Tree.random(depth: depth, of: vocabulary, using: &random))
            let testCase = Case(define: vocabulary.changes, tokens: written.tokens)
            var outcome = testCase.run()
            outcome.message = nil
            #expect(outcome == written.outcome, "\(testCase.testDescription), with \(vocabulary.changes)")
            if outcome.bits != nil { values += 1 }
        }
        // Otherwise most expressions would say little about precedence and order.
        #expect(values > 2_000)
    }

    @Test("a text is split into the tokens that spaces separate in it")
    func texts() {
        var random = RandomSource(seed: RandomSource.seed())
        for _ in 0..<2_000 {
            let vocabulary = Vocabulary(using: &random)
            let tree = Tree.random(depth: Int.random(in: 0...5, using: &random), of: vocabulary, using: &random)
            // The standard dialect has ^, so ^2 is not recognised in a text.
            let tokens = WrittenTree(tree).tokens.flatMap { $0 == "^2" ? ["^", "2"] : [$0] }
            let testCase = Case(define: vocabulary.changes, text: tokens.joined(separator: " "))
            #expect(testCase.run().tokens == tokens)
        }
    }

    @Test(
        "Swift and JavaScript have the same value, bit for bit, or the same error at the same place",
        .enabled(if: Node.isInstalled, Node.requirement))
    func sameInJavaScript() throws {
        var random = RandomSource(seed: RandomSource.seed())
        let cases = (0..<20_000).map { _ in Case.random(using: &random) }
        let inSwift = cases.map { $0.run() }
        let inJavaScript = try Node.outcomes(of: cases)
        try #require(inJavaScript.count == inSwift.count)
        for (testCase, (swift, javaScript)) in zip(cases, zip(inSwift, inJavaScript)) where swift != javaScript {
            Issue.record("\(testCase): \(swift) in Swift, \(javaScript) in JavaScript")
        }
        // A generator without one of the errors would not compare it.
        #expect(inSwift.count { $0.bits != nil } > 2_000)
        #expect(Set(inSwift.compactMap(\.error)) == Set(ExpressionError.Code.allCases.map(\.rawValue)))
        #expect(Set(inSwift.compactMap(\.refused)) == Set(DefinitionError.Code.allCases.map(\.rawValue)))
    }

    @Test(
        "Swift and JavaScript have the same outcome for each case of the table",
        .enabled(if: Node.isInstalled, Node.requirement))
    func sameTableInJavaScript() throws {
        let inJavaScript = try Node.outcomes(of: Case.table)
        try #require(inJavaScript.count == Case.table.count)
        for (testCase, outcome) in zip(Case.table, inJavaScript) {
            #expect(testCase.run() == outcome, "\(testCase.testDescription)")
        }
    }
}
