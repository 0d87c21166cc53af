public import NIOCore

/// One argument of a command. It can be written as a literal: `["SET", "key", 1]`. Bytes are sent
/// unchanged.
public enum RedisArgument: Sendable, Hashable {
    /// The UTF-8 of a string.
    case string(String)
    /// Any bytes.
    case bytes([UInt8])
    /// An integer in decimal digits.
    case integer(Int)
    /// The readable bytes of a buffer.
    case buffer(ByteBuffer)
}

extension RedisArgument: ExpressibleByStringInterpolation, ExpressibleByIntegerLiteral {
    /// Makes an argument from a string literal.
    public init(stringLiteral value: String) { self = .string(value) }
    /// Makes an argument from an integer literal.
    public init(integerLiteral value: Int) { self = .integer(value) }
    /// Makes an argument from a string.
    public init(_ value: String) { self = .string(value) }
    /// Makes an argument from bytes.
    public init(_ value: [UInt8]) { self = .bytes(value) }
    /// Makes an argument from an integer.
    public init(_ value: Int) { self = .integer(value) }
}
