// Sends, and waits on the same connection until what was sent is as safe as the sender wants it.
//
// WAIT and WAITAOF count what was written on their own connection, and keep it busy. So such a send has a connection to
// itself, and a confirmation cannot come from another master than the one that took the messages.
import Hiredis

struct Confirmation: Sendable {
    let redis: any Redis
    let durability: Durability

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
                ? ".fsynced needs WAITAOF, which Redis has from 7.2 on"
                : ".fsynced is not to be had from this server: \(message)")
    }

    /// The script's reply.
    ///
    /// - Throws: `.notDurable` when it was sent, but is not as safe in time.
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
        guard replies[0].array?.first?.string == "ok" else { return replies[0] }
        if let message = replies[1].errorMessage {
            throw QueueListenError(.notDurable, "sent, but not confirmed: \(message)", mayHaveRun: true)
        }
        // WAITAOF counts the server's own disk and the replicas'.
        let count = replies[1].integer ?? replies[1].array?.first?.integer ?? 0
        guard count >= needed else {
            throw QueueListenError(
                .notDurable, "sent, but only \(count) of \(needed) have confirmed within \(timeout)", mayHaveRun: true)
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
