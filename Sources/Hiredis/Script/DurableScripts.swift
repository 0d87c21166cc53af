// Runs a script and waits on the same connection until its writes are as durable as requested.
//
// WAIT and WAITAOF count the writes of their own connection and keep it busy. So the script has a dedicated connection, and
// the confirmation cannot come from a master other than the one that ran it.

/// Scripts that run with a requested durability.
package struct DurableScripts: Sendable {
    /// What the server says of the durability of a script's writes, and of all before them.
    package enum Confirmation: Sendable, Equatable {
        case confirmed
        /// Fewer confirmations than needed have arrived in time.
        case missing(count: Int, needed: Int)
        /// The server does not carry out the command: its message.
        case refused(String)
    }

    private let redis: any Redis
    private let durability: Durability

    /// - Parameter durability: not `.memory`.
    package init(redis: any Redis, durability: Durability) {
        self.redis = redis
        self.durability = durability
    }

    /// Returns why the server cannot confirm the durability, for a message; `nil` if nothing is known to prevent it.
    package func reasonAgainst() async throws -> String? {
        guard durability == .fsynced else { return nil }
        let reply = try await redis.withDedicatedConnection {
            try await $0.pipeline([["WAITAOF", "1", "0", "1"]]).first
        }
        return reply?.errorMessage.map { reason($0) }
    }

    /// Runs a script, waits for the durability, and returns the script's reply.
    ///
    /// - Parameter timeout: how long the server waits for the confirmations.
    /// - Throws: the error reply of the script, and failures of the connection.
    package func run(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration
    ) async throws -> (reply: RESPValue, confirmation: Confirmation) {
        let operands = [.integer(keys.count)] + keys.map { RedisArgument.string($0) } + arguments
        let commands = [RedisCommand(["EVAL", .string(script.source)] + operands), wait(timeout)]
        let replies = try await redis.withDedicatedConnection(timeout: timeout + .milliseconds(500)) {
            try await $0.pipeline(commands)
        }
        guard replies.count == 2 else { throw RedisError(.serverError, "unexpected replies \(replies)") }
        if let message = replies[0].errorMessage { throw RedisError(reply: message) }
        if let message = replies[1].errorMessage { return (replies[0], .refused(reason(message))) }
        // WAITAOF replies with two counts: the server's own disk and the replicas.
        let count = replies[1].integer ?? replies[1].array?.first?.integer ?? 0
        return (replies[0], count >= needed ? .confirmed : .missing(count: count, needed: needed))
    }

    private var needed: Int { if case .replicated(let count) = durability { count } else { 1 } }

    private func wait(_ timeout: Duration) -> RedisCommand {
        let milliseconds = RedisArgument.integer(max(1, timeout.wholeMilliseconds))
        return switch durability {
        case .replicated(let count): ["WAIT", .integer(count), milliseconds]
        default: ["WAITAOF", "1", "0", milliseconds]
        }
    }

    private func reason(_ message: String) -> String {
        guard message.hasPrefix("ERR unknown command") else {
            return "this server does not confirm .\(durability): \(message)"
        }
        return durability == .fsynced
            ? ".fsynced needs the command WAITAOF: use Redis 7.2 or later"
            : ".\(durability) needs the command WAIT, which this server does not have"
    }
}
