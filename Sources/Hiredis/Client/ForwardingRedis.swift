/// A Redis that passes every call on to another one: a conforming type says only what it does
/// differently.
package protocol ForwardingRedis: Redis {
    /// Receives the calls.
    var target: any Redis { get }
}

// The protocol `Redis` documents its requirements.
// swift-format-ignore: AllPublicDeclarationsHaveDocumentation
extension ForwardingRedis {
    package func send(
        _ command: RedisCommand, timeout: Duration?, settle: (@Sendable (RESPValue) -> Void)?
    ) async throws(RedisError) -> RESPValue { try await target.send(command, timeout: timeout, settle: settle) }

    package func pipeline(_ commands: [RedisCommand], timeout: Duration?) async throws(RedisError) -> [RESPValue] {
        try await target.pipeline(commands, timeout: timeout)
    }

    package func withDedicatedConnection<Value>(
        timeout: Duration?, _ body: (DedicatedConnection) async throws -> Value
    ) async throws -> Value { try await target.withDedicatedConnection(timeout: timeout, body) }

    package func transaction(_ commands: [RedisCommand], timeout: Duration?) async throws(RedisError) -> [RESPValue] {
        try await target.transaction(commands, timeout: timeout)
    }

    package func script(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration?
    ) async throws(RedisError) -> RESPValue {
        try await target.script(script, keys: keys, arguments: arguments, timeout: timeout)
    }

    package func block(
        _ command: BlockingCommand, timeout: Duration?, giveBack: @escaping @Sendable (RESPValue) async -> Void
    ) async throws(RedisError) -> RESPValue? { try await target.block(command, timeout: timeout, giveBack: giveBack) }

    package func publish(_ payload: RedisArgument, to channel: SubscriptionTopic) async throws(RedisError) -> Int {
        try await target.publish(payload, to: channel)
    }

    package func subscribe(
        to topics: [SubscriptionTopic], buffer: SubscriptionBuffer
    ) async throws(RedisError) -> Subscription { try await target.subscribe(to: topics, buffer: buffer) }
}
