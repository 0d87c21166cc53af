/// Reads JSON strictly, by RFC 8259: UTF-8, no duplicate names, bounded nesting.
struct JSONParser {
    /// A violation of the format, and the offset in bytes at which it was noticed.
    struct Fault: Error, CustomStringConvertible {
        var what: String
        var offset: Int
        var description: String { "\(what) at byte \(offset)" }
    }

    static let maxDepth = 64
    private let bytes: [UInt8]
    private var at = 0

    /// - Throws: ``Fault``.
    static func parse(_ bytes: [UInt8]) throws(Fault) -> JSON {
        var parser = JSONParser(bytes: bytes)
        let value = try parser.value(depth: 0)
        parser.skipSpace()
        guard parser.at == bytes.count else { throw parser.fault("text after the value") }
        return value
    }

    private init(bytes: [UInt8]) { self.bytes = bytes }

    private func fault(_ what: String) -> Fault { Fault(what: what, offset: at) }

    private var next: UInt8? { at < bytes.count ? bytes[at] : nil }

    private mutating func skipSpace() {
        while let byte = next, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { at += 1 }
    }

    /// Skips a byte if it comes next.
    private mutating func skip(_ character: Unicode.Scalar) -> Bool {
        guard next == UInt8(ascii: character) else { return false }
        at += 1
        return true
    }

    private mutating func value(depth: Int) throws(Fault) -> JSON {
        skipSpace()
        switch next {
        case UInt8(ascii: "{"), UInt8(ascii: "["):
            guard depth < Self.maxDepth else { throw fault("more than \(Self.maxDepth) levels") }
            return next == UInt8(ascii: "{") ? try object(depth: depth) : try array(depth: depth)
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): return try word("true", .bool(true))
        case UInt8(ascii: "f"): return try word("false", .bool(false))
        case UInt8(ascii: "n"): return try word("null", .null)
        case nil: throw fault("the end of the text instead of a value")
        default: return try number()
        }
    }

    private mutating func word(_ text: StaticString, _ value: JSON) throws(Fault) -> JSON {
        let end = at + text.utf8CodeUnitCount
        guard end <= bytes.count, text.withUTF8Buffer({ $0.elementsEqual(bytes[at..<end]) }) else {
            throw fault("an unknown word")
        }
        at = end
        return value
    }

    private mutating func array(depth: Int) throws(Fault) -> JSON {
        at += 1
        var values: [JSON] = []
        skipSpace()
        if skip("]") { return .array(values) }
        while true {
            values.append(try value(depth: depth + 1))
            skipSpace()
            if skip("]") { return .array(values) }
            guard skip(",") else { throw fault("no comma between the elements of an array") }
        }
    }

    private mutating func object(depth: Int) throws(Fault) -> JSON {
        at += 1
        var members: [JSON.Member] = []
        var names: Set<[UInt8]> = []
        skipSpace()
        if skip("}") { return .object(members) }
        while true {
            skipSpace()
            guard next == UInt8(ascii: "\"") else { throw fault("no name of a member") }
            let name = try string()
            guard names.insert(Array(name.utf8)).inserted else { throw fault("the name \"\(name)\" a second time") }
            skipSpace()
            guard skip(":") else { throw fault("no colon after a name") }
            members.append(JSON.Member(name: name, value: try value(depth: depth + 1)))
            skipSpace()
            if skip("}") { return .object(members) }
            guard skip(",") else { throw fault("no comma between the members of an object") }
        }
    }

    private mutating func digits() throws(Fault) {
        let start = at
        while let byte = next, (0x30...0x39).contains(byte) { at += 1 }
        if at == start { throw fault("no digit where a number needs one") }
    }

    private mutating func number() throws(Fault) -> JSON {
        let start = at
        _ = skip("-")
        if !skip("0") { try digits() }
        if skip(".") { try digits() }
        if skip("e") || skip("E") {
            if !skip("+") { _ = skip("-") }
            try digits()
        }
        return .number(String(decoding: bytes[start..<at], as: UTF8.self))
    }

    private mutating func string() throws(Fault) -> String {
        at += 1
        var content: [UInt8] = []
        while true {
            let start = at
            while let byte = next, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\"), byte >= 0x20 { at += 1 }
            content += bytes[start..<at]
            if skip("\"") {
                guard let text = String(validating: content, as: UTF8.self) else {
                    throw fault("text that is not UTF-8")
                }
                return text
            }
            guard skip("\\") else { throw fault("a string without an end, or with a control character") }
            content += Array(String(try escape()).utf8)
        }
    }

    private mutating func escape() throws(Fault) -> Character {
        guard let letter = next else { throw fault("a string without an end") }
        at += 1
        switch Unicode.Scalar(letter) {
        case "\"", "\\", "/": return Character(Unicode.Scalar(letter))
        case "b": return "\u{8}"
        case "f": return "\u{C}"
        case "n": return "\n"
        case "r": return "\r"
        case "t": return "\t"
        case "u":
            let unit = try hexadecimalUnit()
            if let scalar = Unicode.Scalar(unit) { return Character(scalar) }
            guard unit < 0xDC00, skip("\\"), skip("u") else { throw fault("half of a surrogate pair") }
            let low = try hexadecimalUnit()
            guard (0xDC00...0xDFFF).contains(low),
                let scalar = Unicode.Scalar(0x10000 + (UInt32(unit) - 0xD800) << 10 + UInt32(low) - 0xDC00)
            else { throw fault("half of a surrogate pair") }
            return Character(scalar)
        default: throw fault("an unknown escape")
        }
    }

    private mutating func hexadecimalUnit() throws(Fault) -> UInt16 {
        guard at + 4 <= bytes.count, bytes[at..<at + 4].allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }),
            let unit = UInt16(String(decoding: bytes[at..<at + 4], as: UTF8.self), radix: 16)
        else { throw fault("no four hexadecimal digits") }
        at += 4
        return unit
    }
}
