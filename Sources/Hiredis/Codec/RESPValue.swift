/// A reply of the server, as the RESP2 protocol knows it.
///
/// Read it through the accessors, which return `nil` when the reply is of another kind:
///
/// ```swift
/// let reply = try await redis.send("INCR", "visits")
/// let visits = reply.integer
/// ```
///
/// With hiredis 1.x a server that answers in RESP3 is understood too: maps and sets arrive as arrays, doubles and big
/// numbers as bytes, booleans as 0 or 1.
public enum RESPValue: Sendable, Hashable {
    /// A simple string such as `OK`.
    case status(String)
    /// An error reply. `RedisClient.send` throws it; in the replies of a pipeline it stands in its place.
    case error(String)
    case integer(Int)
    /// A bulk string: any bytes, up to `RedisConfiguration.Limits.replyBytes`.
    case bytes([UInt8])
    case array([RESPValue])
    /// A null bulk string or a null array.
    case null
}

extension RESPValue {
    /// The text of a status or of a bulk string that is valid UTF-8.
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

    public var array: [RESPValue]? {
        if case .array(let values) = self { values } else { nil }
    }

    public var isNull: Bool { self == .null }

    /// The server's text, if this is an error reply.
    public var errorMessage: String? {
        if case .error(let message) = self { message } else { nil }
    }
}

extension RESPValue: CustomStringConvertible {
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
