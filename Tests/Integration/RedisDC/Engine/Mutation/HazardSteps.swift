// Steps that the scenarios of several families share.
import Hiredis
import TestSupport

@testable import RedisDCTestSupport

extension Hazard {
    /// Returns the record of the resource `s`.
    static func resource(_ redis: RedisClient) async throws -> Audit.Resource? {
        try await Audit(redis).resources["s"]
    }

    /// The arguments of a request to enter a mutex as a member of a group.
    static func member(_ group: RedisArgument) -> [RedisArgument] { ["mf", "1", "t", 1, "0", "1", group] }

    /// The arguments of a request for a mutex.
    static let lock: [RedisArgument] = ["mf", "1", "m"]

    /// Undoes what `body` has written, like a failover to a replica that has not received it.
    static func lose(_ redis: RedisClient, _ body: () async throws -> Void) async throws {
        let keys = ["book", "index", "sessions", "values"].map { RedisArgument.string("rdc:{default:0}:\($0)") }
        var dumps: [[UInt8]?] = []
        for key in keys { dumps.append(try await redis.send("DUMP", key).bytes) }
        try await body()
        for (key, dump) in zip(keys, dumps) {
            if let dump {
                _ = try await redis.send("RESTORE", key, 0, .bytes(dump), "REPLACE")
            } else {
                _ = try await redis.send("DEL", key)
            }
        }
    }
}

extension ForeignNode {
    /// Returns the claim that this request made, if it has not ended.
    func claim(_ number: Int, _ redis: RedisClient) async throws -> Audit.Claim? {
        let id = await id(number)
        return try await Audit(redis).claims[id]
    }
}

extension RedisClient {
    /// Returns the first message on a node's channel during `body`, or an empty text.
    func firstMessage(to node: ForeignNode, _ body: () async throws -> Void) async throws -> String {
        try await withSubscription(to: [node.channel]) { events in
            try await body()
            _ = try await publish("", to: node.channel)
            guard case .message(let message)? = try await events.next() else { return "" }
            return String(decoding: message.payload, as: UTF8.self)
        }
    }
}
