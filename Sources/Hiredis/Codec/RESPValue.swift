/// A reply of the server in the RESP2 protocol.
///
/// Read it through the properties, which are `nil` when the reply is of another kind:
///
/// ```swift
/// let reply = try await redis.send("INCR", "visits")
/// let visits = reply.integer
/// ```
///
/// With hiredis 1.x, replies in RESP3 are understood too: maps and sets arrive as arrays, doubles
/// and big numbers as bytes, booleans as 0 or 1.
public enum RESPValue: Sendable, Hashable {
    /// A simple string such as `OK`.
    case status(String)
    /// An error reply. ``Redis/send(_:timeout:settle:)`` throws it; among the replies of a pipeline
    /// it is in its place.
    case error(String)
    /// An integer.
    case integer(Int)
    /// A bulk string: any bytes, up to ``RedisConfiguration/Limits/replyBytes``.
    case bytes([UInt8])
    /// An array of replies.
    case array([RESPValue])
    /// A null bulk string or a null array.
    case null
}

extension RESPValue {
    /// The text of a status, or of a bulk string that is valid UTF-8.
    public var string: String? {
        switch self {
        case .status(let text): text
        case .bytes(let bytes): String(validating: bytes, as: UTF8.self)
        default: nil
        }
    }

    /// The value of an integer reply, or of a bulk string or status that is a decimal integer.
    public var integer: Int? {
        switch self {
        case .integer(let value): value
        case .bytes, .status: string.flatMap { Int($0) }
        default: nil
        }
    }

    /// The bytes of a bulk string or of a status.
    public var bytes: [UInt8]? {
        switch self {
        case .bytes(let bytes): bytes
        case .status(let text): Array(text.utf8)
        default: nil
        }
    }

    /// The elements of an array reply.
    public var array: [RESPValue]? {
        if case .array(let values) = self { values } else { nil }
    }

    /// Whether this is a null bulk string or a null array.
    public var isNull: Bool { self == .null }

    /// The server's text of an error reply.
    public var errorMessage: String? {
        if case .error(let message) = self { message } else { nil }
    }
}

extension RESPValue {
    /// The form of the reply, for errors: it contains no data, and is short however large the reply
    /// is.
    package var form: String {
        switch self {
        case .status(let text): "a status of \(text.utf8.count) bytes"
        case .error: "an error"
        case .integer: "an integer"
        case .bytes(let bytes): "\(bytes.count) bytes"
        case .array(let values): "an array of \(values.count)"
        case .null: "null"
        }
    }
}

extension RESPValue: CustomStringConvertible {
    /// The reply in the style of `redis-cli`, on one line.
    public var description: String {
        switch self {
        case .status(let text): text
        case .error(let message): "(error) \(message)"
        case .integer(let value): "\(value)"
        case .bytes(let bytes): String(validating: bytes, as: UTF8.self) ?? "(\(bytes.count) bytes)"
        case .array(let values): "[" + values.map(\.description).joined(separator: ", ") + "]"
        case .null: "(nil)"
        }
    }
}
