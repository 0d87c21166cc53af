// A base for test types that change some operations of a Redis client.
public import Hiredis

/// A type that forwards every operation to a client, except those that it implements itself.
public protocol RedisDecorator: Redis {
    /// The client to which operations are forwarded.
    var redis: RedisClient { get }
}

extension RedisDecorator {
    /// The executor of the client.
    public var serialExecutor: any SerialExecutor { redis.serialExecutor }

    /// Forwards to the client.
    public func execute(_ body: @escaping @Sendable () -> Void) { redis.execute(body) }

    /// Forwards to the client.
    public func script(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration?
    ) async throws -> RESPValue {
        try await redis.script(script, keys: keys, arguments: arguments, timeout: timeout)
    }

    /// Forwards to the client.
    public func post(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration?,
        completion: @escaping @Sendable (Result<RESPValue, RedisError>) -> Void
    ) { redis.post(script, keys: keys, arguments: arguments, timeout: timeout, completion: completion) }

    /// Forwards to the client.
    public func send(
        _ command: RedisCommand, timeout: Duration?, settle: (@Sendable (RESPValue) -> Void)?
    ) async throws -> RESPValue { try await redis.send(command, timeout: timeout, settle: settle) }

    /// Forwards to the client.
    public func pipeline(_ commands: [RedisCommand], timeout: Duration?) async throws -> [RESPValue] {
        try await redis.pipeline(commands, timeout: timeout)
    }

    /// Forwards to the client.
    public func exclusive(_ commands: [RedisCommand], timeout: Duration?) async throws -> [RESPValue] {
        try await redis.exclusive(commands, timeout: timeout)
    }

    /// Forwards to the client.
    public func transaction(_ commands: [RedisCommand], timeout: Duration?) async throws -> [RESPValue] {
        try await redis.transaction(commands, timeout: timeout)
    }

    /// Forwards to the client.
    public func block(
        _ command: BlockingCommand, timeout: Duration?, giveBack: @escaping @Sendable (RESPValue) async -> Void
    ) async throws -> RESPValue? { try await redis.block(command, timeout: timeout, giveBack: giveBack) }

    /// Forwards to the client.
    public func publish(_ payload: RedisArgument, to channel: SubscriptionTopic) async throws -> Int {
        try await redis.publish(payload, to: channel)
    }

    /// Forwards to the client.
    public func subscribe(to topics: [SubscriptionTopic], buffer: SubscriptionBuffer) async throws -> Subscription {
        try await redis.subscribe(to: topics, buffer: buffer)
    }
}
