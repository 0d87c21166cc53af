extension Case {
    /// Returns a random case without an expectation: a valid expression, a damaged one, or tokens in
    /// any order; as tokens or as a text.
    static func random(using random: inout RandomSource) -> Case {
        let vocabulary = Vocabulary(using: &random)
        let tree = Tree.random(depth: Int.random(in: 0...5, using: &random), of: vocabulary, using: &random)
        var tokens = WrittenTree(tree).tokens
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<50: break
        case 50..<90:
            for _ in 0...Int.random(in: 0...2, using: &random) { damage(&tokens, of: vocabulary, using: &random) }
        default:
            tokens = (0..<Int.random(in: 0...12, using: &random)).map { _ in
                randomToken(of: vocabulary, using: &random)
            }
        }
        var result = Case(define: vocabulary.changes)
        if random.isHit(percent: 10) { result.dialect = random.pick(["empty", "basic", "powers", "steps", "bits"]) }
        if random.isHit(percent: 5) { result.maxTokens = Int.random(in: 0...20, using: &random) }
        if random.isHit(percent: 5) { result.define?.append(randomChange(using: &random)) }
        if random.isHit(percent: 30) {
            result.text = tokens.reduce(into: "") { text, token in
                text += token + random.pick(["", "", " ", "\n ", "\t", "\r\n"])
            }
        } else {
            result.tokens = tokens
        }
        return result
    }

    /// Removes, inserts, replaces or exchanges a token.
    private static func damage(_ tokens: inout [String], of vocabulary: Vocabulary, using random: inout RandomSource) {
        let token = randomToken(of: vocabulary, using: &random)
        let index = tokens.indices.randomElement(using: &random)
        switch (Int.random(in: 0..<4, using: &random), index) {
        case (0, let index?): tokens.remove(at: index)
        case (1, let index?): tokens[index] = token
        case (2, let index?): tokens.swapAt(index, random.pick(tokens.indices))
        default: tokens.insert(token, at: Int.random(in: 0...tokens.count, using: &random))
        }
    }

    private static func randomToken(of vocabulary: Vocabulary, using random: inout RandomSource) -> String {
        let strange = [
            "", " ", "x", "x1", "1x", "1..2", "1.", ".5", "-5", "1e", "1e+", "0e0000", "1e1000", "1E-3", "00",
            "123456789012345678901", "000000000000000000000.5", "1e999", "٣", "e\u{301}", "é1", "\u{301}", "\u{a0}",
            "\u{37e}", ";", "🎲", "constructor", "__proto__", "(1)", "\u{0}", "+1", "^25", "^2.5", "^2e1", ".", "^^",
        ]
        switch Int.random(in: 0..<10, using: &random) {
        case 0..<3: return random.pick(["(", ")", ","])
        case 3..<6: return random.pick(vocabulary.operators).name
        case 6: return random.pick(vocabulary.functions.keys.sorted())
        case 7..<9: return Tree.randomNumber(using: &random)
        default: return random.pick(strange)
        }
    }

    /// Returns a change that the dialect may refuse.
    private static func randomChange(using random: inout RandomSource) -> Change {
        let name = random.pick([
            "+", "-", "++", "^2", "floor", "AND", "f", "!", "", "(", "1", "a b", "é", "e\u{301}", "🎲", "x1", "+1", "+a",
            "a+", ".", "\u{a0}", "abcdefghijklmnop", "abcdefghijklmnopq", "🎲🎲🎲🎲🎲🎲🎲🎲🎲🎲🎲🎲🎲🎲🎲🎲🎲",
        ])
        let computes = random.pick(computationsByName.keys.sorted())
        switch Int.random(in: 0..<3, using: &random) {
        case 0: return Change(remove: name)
        case 1: return Change(function: name, computes: computes)
        default:
            return Change(
                operator: name, position: random.pick(["prefix", "infix", "postfix"]), precedence: 5,
                computes: computes)
        }
    }
}
