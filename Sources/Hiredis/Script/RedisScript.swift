import NIOConcurrencyHelpers

/// A Lua script. Make it once and keep it: it stores its hash when it is first loaded.
///
/// ```swift
/// static let increment = RedisScript("return redis.call('INCRBY', KEYS[1], ARGV[1])")
/// let value = try await redis.script(increment, keys: ["visits"], arguments: [3])
/// ```
///
/// Every key that it touches must be among `keys`, because clusters and ACLs rely on them. Redis
/// runs no other command during a script, but does not undo what the script wrote before an error:
/// check first, then write.
public final class RedisScript: Sendable {
    /// The Lua source.
    public let source: String
    /// Whether it extends the life of something on the server that ends without it, as a session does.
    ///
    /// When the server sends nothing for the timeout of such a call, the client replaces the connection, so
    /// that the next call arrives in time. See ``RedisConfiguration/silenceLimit``.
    package let isHeartbeat: Bool
    private let learnedHash = NIOLockedValueBox<String?>(nil)

    /// Makes a script from its Lua source.
    public convenience init(_ source: String) { self.init(source, isHeartbeat: false) }

    package init(_ source: String, isHeartbeat: Bool) { (self.source, self.isHeartbeat) = (source, isHeartbeat) }

    /// Makes a script from source that is embedded in the binary.
    public convenience init(embedded bytes: [UInt8]) { self.init(String(decoding: bytes, as: UTF8.self)) }

    /// The hash that the server returned. It depends on the source alone, so it is the same on
    /// every server.
    var hash: String? {
        get { learnedHash.withLockedValue { $0 } }
        set { learnedHash.withLockedValue { $0 = newValue } }
    }
}
