// Sends a script and waits on the same connection until the write is as durable as requested.
//
// WAIT and WAITAOF count the writes of their own connection and keep it busy. A durable send therefore uses a
// dedicated connection, and its confirmation cannot come from a master other than the one that stored the messages.
import Hiredis

/// Scripts that run with a requested durability.
struct DurableWrites: Sendable {
    let redis: any Redis
    let durability: Durability

    /// Checks that the server supports the durability.
    ///
    /// - Throws: `.unsupported`, before anything is sent.
    func prepare() async throws {
        guard durability == .fsynced else { return }
        let reply = try await redis.withDedicatedConnection {
            try await $0.pipeline([["WAITAOF", "1", "0", "1"]]).first
        }
        guard let message = reply?.errorMessage else { return }
        throw QueueListenError(
            .unsupported,
            message.hasPrefix("ERR unknown command")
                ? ".fsynced needs the command WAITAOF: use Redis 7.2 or later"
                : "this server does not support .fsynced: \(message)")
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
        let operands = [.integer(keys.count)] + keys.map { RedisArgument.string($0) } + arguments
        let commands = [RedisCommand(["EVAL", .string(script.source)] + operands), wait(timeout)]
        let replies = try await redis.withDedicatedConnection(timeout: timeout + .milliseconds(500)) {
            try await $0.pipeline(commands)
        }
        guard replies.count == 2 else { throw QueueListenError(.serverError, "unexpected replies \(replies)") }
        if let message = replies[0].errorMessage { throw RedisError(reply: message) }
        // The answer of a send is a string, that of other scripts an array.
        guard replies[0].bytes != nil || replies[0].array?.first?.string == "ok" else { return replies[0] }
        if let message = replies[1].errorMessage {
            throw QueueListenError(
                .notDurable, "the messages are sent, but their durability is not confirmed: \(message)",
                mayHaveRun: true)
        }
        // WAITAOF replies with two counts: the server's own disk and the replicas.
        let count = replies[1].integer ?? replies[1].array?.first?.integer ?? 0
        guard count >= needed else {
            throw QueueListenError(
                .notDurable,
                "the messages are sent, but only \(count) of \(needed) confirmations arrived within \(timeout)",
                mayHaveRun: true)
        }
        return replies[0]
    }

    private var needed: Int { if case .replicated(let count) = durability { count } else { 1 } }

    private func wait(_ timeout: Duration) -> RedisCommand {
        let milliseconds = RedisArgument.integer(max(1, timeout.wholeMilliseconds))
        return switch durability {
        case .replicated(let count): ["WAIT", .integer(count), milliseconds]
        default: ["WAITAOF", "1", "0", milliseconds]
        }
    }
}
