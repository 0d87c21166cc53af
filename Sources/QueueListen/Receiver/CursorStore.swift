// Where a receiver keeps how far it has got.
#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif
public import Hiredis

/// Keeps a cursor. Make your own to keep it in the transaction that has the messages' effects: then each has its effect
/// exactly once, whatever dies.
public protocol CursorStore: Sendable {
    /// The cursor that was saved last; `nil` when none was.
    func load() async throws -> Cursor?

    /// Called after each message, when its handler has returned.
    func save(_ cursor: Cursor) async throws
}

/// Keeps a cursor in a file, which is replaced as a whole: a process that dies leaves the old one or the new one.
public struct FileCursorStore: CursorStore {
    public let path: String

    /// - Parameter path: of a file in a folder that is there.
    public init(path: String) { self.path = path }

    /// - Throws: what reading throws; `.undecodable` when the file has something else in it.
    public func load() async throws -> Cursor? {
        guard FileManager.default.fileExists(atPath: path) else { return nil }
        let text = String(decoding: try Data(contentsOf: URL(filePath: path)), as: UTF8.self)
        let token = text.filter { !$0.isWhitespace }
        guard let cursor = Cursor(token) else {
            throw QueueListenError(.undecodable, "\(path) has no cursor in it")
        }
        return cursor
    }

    public func save(_ cursor: Cursor) async throws {
        try Data("\(cursor)\n".utf8).write(to: URL(filePath: path), options: .atomic)
    }
}

/// Keeps a cursor in a string of a Redis, which may be another one than the mailbox's.
public struct RedisCursorStore: CursorStore {
    private let redis: any Redis
    private let key: String

    public init(redis: any Redis, key: String) {
        self.redis = redis
        self.key = key
    }

    /// - Throws: `RedisError`; `.undecodable` when the key has something else in it.
    public func load() async throws -> Cursor? {
        let reply = try await redis.send("GET", .string(key))
        if reply.isNull { return nil }
        guard let cursor = reply.string.flatMap({ Cursor($0) }) else {
            throw QueueListenError(.undecodable, "the key \(key) has no cursor in it")
        }
        return cursor
    }

    public func save(_ cursor: Cursor) async throws { _ = try await redis.send("SET", .string(key), "\(cursor)") }
}
