public import NIOCore

/// A value that can be an argument of a command: text, bytes or an integer.
public protocol RedisArgumentConvertible {
    /// The value as an argument.
    var redisArgument: RedisArgument { get }
}

extension RedisArgument: RedisArgumentConvertible {
    /// The argument itself.
    public var redisArgument: RedisArgument { self }
}

extension String: RedisArgumentConvertible {
    /// The UTF-8 of the string.
    public var redisArgument: RedisArgument { .string(self) }
}

extension Substring: RedisArgumentConvertible {
    /// The UTF-8 of the string.
    public var redisArgument: RedisArgument { .string(String(self)) }
}

extension Int: RedisArgumentConvertible {
    /// The integer in decimal digits.
    public var redisArgument: RedisArgument { .integer(self) }
}

extension [UInt8]: RedisArgumentConvertible {
    /// The bytes.
    public var redisArgument: RedisArgument { .bytes(self) }
}

extension ByteBuffer: RedisArgumentConvertible {
    /// The readable bytes.
    public var redisArgument: RedisArgument { .buffer(self) }
}

extension RedisCommand {
    /// Makes a command from its name and values: `RedisCommand("SET", key, value)`.
    ///
    /// Literals alone make a command without this initializer.
    @_disfavoredOverload
    public init(_ name: String, _ arguments: any RedisArgumentConvertible...) {
        self.init([.string(name)] + arguments.map(\.redisArgument))
    }
}

extension Redis {
    /// Sends one command with values as its arguments, and returns its reply:
    /// `try await redis.send("SET", key, value)`.
    @_disfavoredOverload
    @discardableResult
    public func send(
        _ name: String, _ arguments: any RedisArgumentConvertible...
    ) async throws(RedisError) -> RESPValue {
        try await send(RedisCommand([.string(name)] + arguments.map(\.redisArgument)), timeout: nil, settle: nil)
    }
}
