// Hexadecimal and Base64 texts of secrets and ids.

extension UInt8 {
    /// Whether it is one of `A–Z a–z 0–9 - _`.
    var isBase64URL: Bool {
        switch self {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
            true
        default: false
        }
    }
}

extension Sequence where Element == UInt8 {
    /// Two lower-case digits for each byte.
    var hexadecimal: String {
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }

    /// Base64 for URLs, without padding.
    var base64URL: String {
        let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
        var text: [UInt8] = []
        var (buffer, bits) = (0, 0)
        for byte in self {
            (buffer, bits) = ((buffer << 8 | Int(byte)) & 0xFFFF, bits + 8)
            while bits >= 6 {
                bits -= 6
                text.append(letters[buffer >> bits & 63])
            }
        }
        if bits > 0 { text.append(letters[buffer << (6 - bits) & 63]) }
        return String(decoding: text, as: UTF8.self)
    }
}

extension Array where Element == UInt8 {
    /// Reads lower-case hexadecimal digits; `nil` if the text is something else.
    init?(lowerCaseHexadecimal text: some StringProtocol) {
        func digit(_ byte: UInt8) -> UInt8? {
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
            default: nil
            }
        }
        let digits = Array(text.utf8)
        guard digits.count % 2 == 0 else { return nil }
        self = []
        for at in stride(from: 0, to: digits.count, by: 2) {
            guard let high = digit(digits[at]), let low = digit(digits[at + 1]) else { return nil }
            append(high << 4 | low)
        }
    }

    /// Random bytes from the system's secure generator.
    static func random(_ count: Int) -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
    }
}
