/// The grammar of numbers: digits, an optional fraction, an optional exponent, and no sign.
///
/// ECMAScript specifies the value of a literal exactly only up to 20 significant digits; Swift
/// always rounds correctly. With this bound, both languages read the same number.
enum NumberLiteral {
    /// The maximum number of digits from the first to the last that is not zero.
    static let maxSignificantDigits = 20

    /// The maximum number of digits in the exponent.
    static let maxExponentDigits = 3

    /// Returns the index after the longest literal that begins at `start`, or `start` if none does.
    static func end(in scalars: [Unicode.Scalar], from start: Int) -> Int {
        var end = endOfDigits(in: scalars, from: start)
        guard end > start else { return start }
        if end < scalars.count, scalars[end] == "." {
            let fraction = endOfDigits(in: scalars, from: end + 1)
            if fraction > end + 1 { end = fraction }
        }
        if end < scalars.count, scalars[end] == "e" || scalars[end] == "E" {
            var digits = end + 1
            if digits < scalars.count, scalars[digits] == "+" || scalars[digits] == "-" { digits += 1 }
            let exponent = endOfDigits(in: scalars, from: digits)
            if exponent > digits { end = exponent }
        }
        return end
    }

    /// Returns the value of a token that is one literal within the bounds, infinity if it is too
    /// large for a `Double`, and `nil` for every other token.
    static func value(of token: String) -> Double? {
        let scalars = Array(token.unicodeScalars)
        guard !scalars.isEmpty, end(in: scalars, from: 0) == scalars.count else { return nil }
        let parts = scalars.split(maxSplits: 1, whereSeparator: { $0 == "e" || $0 == "E" })
        let digits = parts[0].filter(\.isDigit)
        let significant = digits.drop { $0 == "0" }.reversed().drop { $0 == "0" }
        guard significant.count <= maxSignificantDigits else { return nil }
        guard parts.count == 1 || parts[1].count(where: \.isDigit) <= maxExponentDigits else { return nil }
        return Double(token)
    }

    /// Returns the index after the digits that begin at `start`.
    static func endOfDigits(in scalars: [Unicode.Scalar], from start: Int) -> Int {
        var end = start
        while end < scalars.count, scalars[end].isDigit { end += 1 }
        return end
    }
}
