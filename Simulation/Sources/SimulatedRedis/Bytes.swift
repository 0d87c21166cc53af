// A byte string: keys, fields, members, values and messages, which need not be text.

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// A byte string, ordered as Redis orders them: by their bytes, and the shorter one first.
public struct Bytes: Hashable, Comparable, Sendable {
    /// The bytes.
    public var array: [UInt8]

    /// Creates a byte string of bytes.
    public init(_ array: [UInt8]) { self.array = array }

    /// Creates a byte string of the UTF-8 of a text.
    public init(_ text: String) { array = Array(text.utf8) }

    /// Creates a byte string that shows a number in decimal.
    public init(_ number: Int64) { self.init(String(number)) }

    /// Creates a copy of memory.
    public init(copying memory: UnsafeRawBufferPointer) { array = Array(memory) }

    /// The number of bytes.
    public var count: Int { array.count }

    /// Whether there is no byte.
    public var isEmpty: Bool { array.isEmpty }

    /// The bytes as text, in which each byte that is no part of valid UTF-8 is U+FFFD.
    public var text: String { String(decoding: array, as: UTF8.self) }

    public func hash(into hasher: inout Hasher) {
        array.withUnsafeBytes { hasher.combine(bytes: $0) }
    }

    public static func == (one: Bytes, other: Bytes) -> Bool {
        one.count == other.count && one.compared(to: other) == 0
    }

    public static func < (one: Bytes, other: Bytes) -> Bool { one.compared(to: other) < 0 }

    /// Joins two byte strings.
    public static func + (one: Bytes, other: Bytes) -> Bytes { Bytes(one.array + other.array) }

    /// Returns a negative number if these bytes come first, a positive one if the others do, and 0 for equal ones.
    func compared(to other: Bytes) -> Int {
        let order = array.withUnsafeBufferPointer { one in
            other.array.withUnsafeBufferPointer { other in
                guard let one = one.baseAddress, let second = other.baseAddress else { return Int32(0) }
                return memcmp(one, second, min(self.count, other.count))
            }
        }
        return order == 0 ? count - other.count : Int(order)
    }

    /// A copy with capital letters in place of small ASCII ones.
    var uppercased: Bytes {
        Bytes(array.map { $0 >= UInt8(ascii: "a") && $0 <= UInt8(ascii: "z") ? $0 - 32 : $0 })
    }

    /// The bytes as C prints them: up to a zero byte, and not more than a limit.
    func printed(_ limit: Int = .max) -> Bytes { Bytes(Array(array.prefix(limit).prefix { $0 != 0 })) }

    /// Whether these bytes are a word, which is in capitals, in any case of the letters.
    func isWord(_ word: StaticString) -> Bool {
        guard count == word.utf8CodeUnitCount else { return false }
        for index in 0..<count {
            let byte = array[index]
            let upper = byte >= UInt8(ascii: "a") && byte <= UInt8(ascii: "z") ? byte - 32 : byte
            if upper != word.utf8Start[index] { return false }
        }
        return true
    }
}

extension Bytes: ExpressibleByStringLiteral, CustomStringConvertible {
    public init(stringLiteral text: String) { self.init(text) }

    /// The bytes as text, in which bytes that are not printable ASCII are written as `\xNN`.
    public var description: String {
        var text = ""
        for byte in array {
            switch byte {
            case UInt8(ascii: "\\"): text += "\\\\"
            case UInt8(ascii: " ")...UInt8(ascii: "~"): text.unicodeScalars.append(Unicode.Scalar(byte))
            default: text += "\\x" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
            }
        }
        return text
    }
}
