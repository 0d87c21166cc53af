import Hiredis

/// The state of a server as it describes itself: the fields of `INFO`, and settings from `CONFIG GET`.
struct ServerState {
    /// The settings that `INFO` does not contain.
    static let settings = ["appendfsync", "min-replicas-to-write", "min-replicas-max-lag"]

    /// The fields of `INFO`; `nil` if the user may not call it.
    let info: [Substring: Substring]?
    /// The values of ``settings``; `nil` if the user may not read them.
    let config: [String: String]?

    init(_ server: RedisMaster) async {
        info = await Self.info(server)
        config = await Self.config(server)
    }

    private static func info(_ server: RedisMaster) async -> [Substring: Substring]? {
        guard let text = try? await server.send(["INFO"]).string else { return nil }
        let pairs = text.split(whereSeparator: \.isNewline).compactMap { line -> (Substring, Substring)? in
            guard let colon = line.firstIndex(of: ":") else { return nil }
            return (line[..<colon], line[line.index(after: colon)...])
        }
        return Dictionary(pairs) { first, _ in first }
    }

    private static func config(_ server: RedisMaster) async -> [String: String]? {
        // One command for each: Redis 6.2 accepts only one setting.
        let commands = settings.map { RedisCommand(["CONFIG", "GET", .string($0)]) }
        guard let replies = try? await server.pipeline(commands) else { return nil }
        var values: [String: String] = [:]
        for (name, reply) in zip(settings, replies) {
            guard let value = reply.array?.last?.string else { return nil }
            values[name] = value
        }
        return values
    }
}
