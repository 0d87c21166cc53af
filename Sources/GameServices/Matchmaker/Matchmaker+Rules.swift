import CoordinationBase
public import Hiredis

extension Matchmaker {
    /// Returns a configuration with the size and the window of an existing matchmaker, for tools that
    /// do not know them; `nil` if nothing was ever enqueued.
    ///
    /// - Throws: `.invalidArgument`, and the failures of a command.
    public static func rules(
        of name: String, redis: any Redis, namespace: String = "default"
    ) async throws(GameServiceError) -> MatchmakerConfiguration? {
        let state = try ServiceKeys(namespace: namespace, kind: "match", name: name).key("state")
        let reply: RESPValue
        do throws(RedisError) { reply = try await redis.send("HGET", .string(state), "rules") } catch {
            throw GameServiceError(error).prefixed("cannot read matchmaker \"\(name)\"")
        }
        if reply.isNull { return nil }
        let words = reply.string?.split(separator: " ").compactMap { Int($0) } ?? []
        guard words.count == 5 else { throw GameServiceError(unexpected: reply) }
        var configuration = MatchmakerConfiguration()
        configuration.size = words[0]
        configuration.window = MatchWindow(
            start: words[1], step: words[2], every: .milliseconds(words[3]), max: words[4])
        return configuration
    }
}
