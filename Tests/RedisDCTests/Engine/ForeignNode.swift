// A node that uses nothing of the library but its Lua files, like a program in another language.
import Foundation
import Hiredis
import Testing

/// A session that follows docs/wire-format.md with the scripts alone.
///
/// `alter` may change the scripts before they are loaded, to test what depends on a line.
final class ForeignNode: Sendable {
    private let redis: RedisClient
    let session = UUID().uuidString.replacingOccurrences(of: "-", with: "")
    private let alter: @Sendable (String) -> String
    private let requests = Order()

    init(
        _ redis: RedisClient, ttl: Duration = .seconds(60), alter: @escaping @Sendable (String) -> String = { $0 }
    ) async throws {
        self.redis = redis
        self.alter = alter
        let microseconds = Int(ttl / .microseconds(1))
        let reply = try await run(
            "join", [.string(session), "epoch of a foreign node", .integer(microseconds), 1, "elsewhere 1 foreign"])
        try #require(reply.first == "ok")
    }

    /// Sends a request with the next number, or a given one, and returns the elements of its reply
    /// as text.
    func request(
        _ operation: String, _ name: String, _ arguments: [RedisArgument] = [], number: Int? = nil,
        settled: Int? = nil, confirming claim: Int? = nil
    ) async throws -> [String] {
        if number == nil { await requests.add(0) }
        let next = await requests.all.count
        let head: [RedisArgument] = [
            .string(session), .integer(number ?? next), settled.map { .integer($0) } ?? "",
            claim.map { .integer($0) } ?? "", .string(name),
        ]
        return try await run(operation, head + arguments)
    }

    /// Returns the number of the last request that `body` sends, which also names its claim.
    func number(of body: () async throws -> Void) async throws -> Int {
        try await body()
        return await requests.all.count
    }

    func signal(_ name: String, _ count: Int = 1) async throws {
        let reply = try await request("signal", name, ["s", "0", "f", .integer(count)])
        try #require(reply.first == "ok")
    }

    /// Acquires a permit to consume, and returns the first word of the reply and the number of the
    /// claim.
    func acquire(_ name: String, queues: Bool = true) async throws -> (status: String, claim: Int) {
        let reply = try await request("acquire", name, ["s", "0", "f", 1, "c", queues ? "0" : "1"])
        return (reply[0], await requests.all.count)
    }

    var channel: SubscriptionTopic { .channel("rdc:{default:0}:wake:\(session)") }

    static func source(_ name: String) throws -> String {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../../Sources/RedisDC/Scripts")
        return try String(contentsOf: folder.appendingPathComponent("engine_\(name).lua"), encoding: .utf8)
    }

    private func run(_ name: String, _ arguments: [RedisArgument]) async throws -> [String] {
        let parts: [String] =
            switch name {
            case "join", "leave": [name]
            case "acquire", "signal", "create", "resize", "arrive", "register", "count", "gate", "pass":
                ["head", "resource", name, "tail"]
            default: ["head", name, "tail"]
            }
        let source = try parts.map { try Self.source($0) }.joined()
        let keys = ["book", "index", "sessions"].map { "rdc:{default:0}:\($0)" }
        let reply = try await redis.script(RedisScript(alter(source)), keys: keys, arguments: arguments)
        return (reply.array ?? []).map { $0.string ?? $0.integer.map { "\($0)" } ?? "" }
    }
}
