import Foundation
import Gateway
import Hiredis

/// JSON documents in Redis that many nodes change, each as a compare-and-set on the version that it has read.
///
/// A change has consequences, such as messages to the players. A node that changes a document carries them out, and then
/// says so. If it dies before, the document is still in the list of those that are due, and any node carries them out: so
/// consequences must be idempotent, for example a send whose id is the document with its version.
///
/// All documents of a store are in one slot of a cluster.
struct Documents: Sendable {
    /// A document as it was read.
    struct Read<Value: Sendable>: Sendable {
        var value: Value
        /// 0 if there is none yet.
        var version: Int
    }

    let redis: any Redis
    private let prefix: String

    /// - Parameter name: of the store.
    init(_ name: String, redis: any Redis, namespace: String) {
        self.redis = redis
        prefix = "{\(namespace):\(name)}:"
    }

    private var due: String { prefix + "due" }

    /// KEYS[1] document, KEYS[2] due. ARGV[1] the version that was read, ARGV[2] JSON, ARGV[3] the name.
    private static let replace = RedisScript(
        """
        if (redis.call('HGET', KEYS[1], 'version') or '0') ~= ARGV[1] then return 0 end
        local time = redis.call('TIME')
        redis.call('HSET', KEYS[1], 'version', ARGV[1] + 1, 'json', ARGV[2])
        redis.call('ZADD', KEYS[2], time[1], ARGV[3])
        return 1
        """)

    /// KEYS[1] document, KEYS[2] due. ARGV[1] the version whose consequences were carried out, ARGV[2] the name.
    private static let finish = RedisScript(
        """
        if redis.call('HGET', KEYS[1], 'version') == ARGV[1] then redis.call('ZREM', KEYS[2], ARGV[2]) end
        return 1
        """)

    /// KEYS[1] due. ARGV[1] the age in seconds. Takes no document out: that is done by `finish`.
    private static let overdue = RedisScript(
        """
        local now = redis.call('TIME')[1]
        return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[1], 'LIMIT', 0, 100)
        """)

    func read<Value: Codable & Sendable>(_ name: String, _ type: Value.Type) async throws -> Read<Value>? {
        let values = try await redis.send(RedisCommand("HMGET", .string(prefix + name), "version", "json")).array ?? []
        guard values.count == 2, let version = values[0].string.flatMap({ Int($0) }), let json = values[1].bytes else {
            return nil
        }
        return Read(value: try JSONDecoder().decode(type, from: Data(json)), version: version)
    }

    /// Changes a document as it is now: if another change comes in between, from the new state.
    ///
    /// - Parameters:
    ///   - initial: the value if there is no document; without it, that is a refusal.
    ///   - body: returns whether it has changed the value.
    /// - Returns: the document after the change.
    func change<Value: Codable & Sendable>(
        _ name: String, initial: Value? = nil, _ body: (inout Value) throws -> Bool
    ) async throws -> Read<Value> {
        while true {
            guard var read = try await read(name, Value.self) ?? initial.map({ Read(value: $0, version: 0) }) else {
                throw CallRefusal("gone", "there is no such match")
            }
            guard try body(&read.value) else { return read }
            let reply = try await redis.script(
                Self.replace, keys: [prefix + name, due],
                arguments: [
                    .string(String(read.version)), .bytes(Array(try JSONEncoder().encode(read.value))), .string(name),
                ])
            if reply.integer == 1 { return Read(value: read.value, version: read.version + 1) }
        }
    }

    /// Says that the consequences of this version were carried out.
    func finish(_ name: String, version: Int) async throws {
        _ = try await redis.script(
            Self.finish, keys: [prefix + name, due], arguments: [.string(String(version)), .string(name)])
    }

    /// KEYS[1] document, KEYS[2] due. ARGV[1] the name.
    private static let delete = RedisScript(
        """
        redis.call('ZREM', KEYS[2], ARGV[1])
        return redis.call('DEL', KEYS[1])
        """)

    /// Removes a document, whatever its version.
    func remove(_ name: String) async throws {
        _ = try await redis.script(Self.delete, keys: [prefix + name, due], arguments: [.string(name)])
    }

    /// The documents whose consequences have been due for some seconds.
    func overdue(seconds: Int) async throws -> [String] {
        let reply = try await redis.script(Self.overdue, keys: [due], arguments: [.integer(seconds)])
        return (reply.array ?? []).compactMap(\.string)
    }
}
