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

    // Lua/documents.lua describes the arguments and replies.
    private static let replace = RedisScript(embedded: PackageResources.document_replace_lua)

    private static let finish = RedisScript(embedded: PackageResources.document_finish_lua)

    /// Takes no document out: that is done by `finish`.
    private static let overdue = RedisScript(embedded: PackageResources.document_overdue_lua)

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

    private static let delete = RedisScript(embedded: PackageResources.document_delete_lua)

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
