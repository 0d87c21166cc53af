// The replies of a server to commands.

/// A reply of the protocol RESP2.
public indirect enum Reply: Hashable, Sendable {
    /// A short text, as `OK`.
    case status(Bytes)
    /// An error: its code, a space and a message.
    case error(Bytes)
    /// A number.
    case integer(Int64)
    /// A byte string.
    case bulk(Bytes)
    /// The byte string that does not exist.
    case null
    /// The array that does not exist.
    case nullArray
    /// A list of replies.
    case array([Reply])

    /// The status `OK`.
    static let ok = Reply.status("OK")

    /// An array of byte strings.
    static func bulks(_ list: some Sequence<Bytes>) -> Reply { .array(list.map { .bulk($0) }) }

    /// The number 1 or 0.
    static func flag(_ isTrue: Bool) -> Reply { .integer(isTrue ? 1 : 0) }

    /// Whether this is an error.
    public var isError: Bool {
        if case .error = self { true } else { false }
    }

    /// The elements of an array.
    public var elements: [Reply]? {
        if case .array(let elements) = self { elements } else { nil }
    }

    /// The bytes of a byte string or a status.
    public var bytes: Bytes? {
        switch self {
        case .bulk(let bytes), .status(let bytes): bytes
        default: nil
        }
    }

    /// The value of a number.
    public var integer: Int64? {
        if case .integer(let value) = self { value } else { nil }
    }
}

extension Reply: CustomStringConvertible {
    /// The reply as `redis-cli` shows it, in one line.
    public var description: String {
        switch self {
        case .status(let text): "\(text)"
        case .error(let text): "(error) \(text)"
        case .integer(let value): "\(value)"
        case .bulk(let bytes): "\"\(bytes)\""
        case .null: "(nil)"
        case .nullArray: "(nil array)"
        case .array(let elements): "[" + elements.map(\.description).joined(separator: ", ") + "]"
        }
    }
}

/// An error that ends a command, with the text of the reply.
struct RedisError: Error, Hashable {
    var message: Bytes

    init(_ message: Bytes) { self.message = message }

    static let syntax = RedisError("ERR syntax error")
    static let wrongType = RedisError("WRONGTYPE Operation against a key holding the wrong kind of value")
    static let notInteger = RedisError("ERR value is not an integer or out of range")
    static let notFloat = RedisError("ERR value is not a valid float")
    static let rangeNotFloat = RedisError("ERR min or max is not a float")
    static let rangeNotLex = RedisError("ERR min or max not valid string range item")
    static let overflow = RedisError("ERR increment or decrement would overflow")
    static let noScript = RedisError("NOSCRIPT No matching script. Please use EVAL.")
    static let readOnly = RedisError("READONLY You can't write against a read only replica.")
    static let noMemory = RedisError("OOM command not allowed when used memory > 'maxmemory'.")
    static let crossSlot = RedisError("CROSSSLOT Keys in request don't hash to the same slot")
    static let notPositive = RedisError("ERR value is out of range, must be positive")

    static func wrongArity(_ name: String) -> RedisError {
        RedisError(Bytes("ERR wrong number of arguments for '\(name.lowercased())' command"))
    }

    static func invalidExpiry(_ name: String) -> RedisError {
        RedisError(Bytes("ERR invalid expire time in '\(name)' command"))
    }
}
