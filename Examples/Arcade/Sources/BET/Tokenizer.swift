/// Splits a text into the tokens of a dialect.
///
/// Spaces, tabs and line breaks separate tokens. Where they are left out, the longest number, word
/// or operator is taken: `1++2` is `1`, `++`, `2`. An operator whose name ends with digits, such as
/// `^2`, is only recognised in a dialect that does not have the operator without the digits: with
/// both, `2^2^3` has to be `2^(2^3)`.
///
/// Text that the dialect does not know becomes a token too: a word or a single character. Parsing
/// reports it as `unknownToken` at its index. So every text can be split, in time and memory
/// proportional to its length.
public struct Tokenizer: Sendable {
    /// A token and its place in the text.
    public struct Token: Hashable, Sendable {
        /// The token.
        public let text: String
        /// The number of Unicode scalars before the token in the text.
        public let offset: Int
    }

    private let dialect: Dialect

    /// Creates a tokenizer for the operators and functions of a dialect.
    public init(_ dialect: Dialect = .standard) { self.dialect = dialect }

    /// Returns the tokens of a text.
    public func tokens(of text: String) -> [Token] {
        let scalars = Array(text.unicodeScalars)
        var tokens: [Token] = []
        var offset = 0
        while offset < scalars.count {
            if scalars[offset].isSpace {
                offset += 1
                continue
            }
            let end = endOfToken(in: scalars, from: offset)
            tokens.append(Token(text: string(scalars[offset..<end]), offset: offset))
            offset = end
        }
        return tokens
    }

    private func endOfToken(in scalars: [Unicode.Scalar], from start: Int) -> Int {
        if scalars[start].isDigit { return NumberLiteral.end(in: scalars, from: start) }
        if scalars[start].startsWord {
            return scalars[start...].firstIndex { !$0.continuesWord } ?? scalars.count
        }
        let longest = scalars[start...].prefix(Name.maxLength).prefix(while: \.isSymbol)
        var end = longest.endIndex
        while end > start {
            let name = string(scalars[start..<end])
            if dialect.isOperator(name) || dialect.isFunction(name) { return end }
            // Digits after the name belong to it only if they are a number of their own: not in `^2.5`.
            let digits = NumberLiteral.endOfDigits(in: scalars, from: end)
            if digits > end, digits - start <= Name.maxLength, digits == NumberLiteral.end(in: scalars, from: end) {
                let nameWithDigits = string(scalars[start..<digits])
                if dialect.isOperator(nameWithDigits) || dialect.isFunction(nameWithDigits) { return digits }
            }
            end -= 1
        }
        return start + 1
    }

    private func string(_ scalars: ArraySlice<Unicode.Scalar>) -> String {
        String(String.UnicodeScalarView(scalars))
    }
}
