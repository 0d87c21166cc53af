public import Hiredis

/// Stores a cursor in a string of a Redis server, which may be another one than the mailbox's.
public struct RedisCursorStore: CursorStore {
    private let redis: any Redis
    private let key: String

    /// Creates a store. The key need not exist.
    ///
    /// - Parameters:
    ///   - redis: a running client.
    ///   - key: the whole key, which is used as it is.
    public init(redis: any Redis, key: String) {
        self.redis = redis
        self.key = key
    }

    /// Reads the cursor; returns `nil` if the key does not exist.
    ///
    /// - Throws: `RedisError`; `.undecodable` if the key contains anything but a cursor.
    public func load() async throws -> Cursor? {
        let reply = try await redis.send("GET", .string(key))
        if reply.isNull { return nil }
        guard let cursor = reply.string.flatMap({ Cursor($0) }) else {
            throw QueueListenError(
                .undecodable, "the key \(key) does not contain a cursor: delete it to start where the mailbox begins")
        }
        return cursor
    }

    /// Overwrites the key.
    ///
    /// - Throws: `RedisError`.
    public func save(_ cursor: Cursor) async throws { _ = try await redis.send("SET", .string(key), "\(cursor)") }
}
