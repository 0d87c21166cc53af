// A Redis that implements the public protocol and nothing else, as a user's own decorator does.
public import Hiredis

/// Passes every call on to a client.
public struct PlainRedis: Redis {
    private let redis: RedisClient

    public init(_ redis: RedisClient) { self.redis = redis }

    public func send(
        _ command: RedisCommand, timeout: Duration?, settle: (@Sendable (RESPValue) -> Void)?
    ) async throws(RedisError) -> RESPValue { try await redis.send(command, timeout: timeout, settle: settle) }

    public func pipeline(_ commands: [RedisCommand], timeout: Duration?) async throws(RedisError) -> [RESPValue] {
        try await redis.pipeline(commands, timeout: timeout)
    }

    public func withDedicatedConnection<Value>(
        timeout: Duration?, _ body: (DedicatedConnection) async throws -> Value
    ) async throws -> Value { try await redis.withDedicatedConnection(timeout: timeout, body) }

    public func transaction(_ commands: [RedisCommand], timeout: Duration?) async throws(RedisError) -> [RESPValue] {
        try await redis.transaction(commands, timeout: timeout)
    }

    public func script(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration?
    ) async throws(RedisError) -> RESPValue {
        try await redis.script(script, keys: keys, arguments: arguments, timeout: timeout)
    }

    public func block(
        _ command: BlockingCommand, timeout: Duration?, giveBack: @escaping @Sendable (RESPValue) async -> Void
    ) async throws(RedisError) -> RESPValue? { try await redis.block(command, timeout: timeout, giveBack: giveBack) }

    public func publish(_ payload: RedisArgument, to channel: SubscriptionTopic) async throws(RedisError) -> Int {
        try await redis.publish(payload, to: channel)
    }

    public func subscribe(
        to topics: [SubscriptionTopic], buffer: SubscriptionBuffer
    ) async throws(RedisError) -> Subscription { try await redis.subscribe(to: topics, buffer: buffer) }
}
