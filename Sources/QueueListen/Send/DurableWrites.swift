// Sends a script, and waits until what it has stored is as durable as requested.
import Hiredis

/// Scripts that run with a requested durability.
struct DurableWrites: Sendable {
    let redis: any Redis
    let durability: Durability
    /// What has taken effect, for the messages of errors.
    var subject = "the messages are sent"

    private var scripts: DurableScripts { DurableScripts(redis: redis, durability: durability) }

    /// Checks that the server supports the durability.
    ///
    /// - Throws: `.unsupported`, before anything is sent.
    func prepare() async throws {
        if durability == .memory { return }
        if let reason = try await scripts.reasonAgainst() { throw QueueListenError(.unsupported, reason) }
    }

    /// Runs a script, waits for the durability, and returns the script's reply.
    ///
    /// - Throws: `.notDurable` when the script ran but the durability was not reached within
    ///   `timeout`.
    func run(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration
    ) async throws -> RESPValue {
        if durability == .memory {
            return try await redis.script(script, keys: keys, arguments: arguments, timeout: timeout)
        }
        let (reply, confirmation) = try await scripts.run(script, keys: keys, arguments: arguments, timeout: timeout)
        // The answer of a send is a string, that of other scripts an array. A refused send has stored nothing.
        guard reply.bytes != nil || reply.array?.first?.string == "ok" else { return reply }
        switch confirmation {
        case .confirmed: return reply
        case .missing(let count, let needed):
            throw QueueListenError(
                .notDurable,
                "\(subject), but only \(count) of \(needed) confirmations arrived within \(timeout)",
                mayHaveRun: true)
        case .refused(let reason):
            throw QueueListenError(
                .notDurable, "\(subject), but the durability is not confirmed: \(reason)", mayHaveRun: true
            )
        }
    }
}
