// A Redis that does something else than a client in some ways, and the same in all others.
public import Hiredis

/// Passes every call on; a test's type says only what is different.
public protocol RedisDecorator: Redis {
    var redis: RedisClient { get }
}

extension RedisDecorator {
    public var serialExecutor: any SerialExecutor { redis.serialExecutor }

    public func execute(_ body: @escaping @Sendable () -> Void) { redis.execute(body) }

    public func script(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration?
    ) async throws -> RESPValue {
        try await redis.script(script, keys: keys, arguments: arguments, timeout: timeout)
    }

    public func post(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration?,
        completion: @escaping @Sendable (Result<RESPValue, RedisError>) -> Void
    ) { redis.post(script, keys: keys, arguments: arguments, timeout: timeout, completion: completion) }

    public func send(
        _ command: RedisCommand, timeout: Duration?, settle: (@Sendable (RESPValue) -> Void)?
    ) async throws -> RESPValue { try await redis.send(command, timeout: timeout, settle: settle) }

    public func pipeline(_ commands: [RedisCommand], timeout: Duration?) async throws -> [RESPValue] {
        try await redis.pipeline(commands, timeout: timeout)
    }

    public func exclusive(_ commands: [RedisCommand], timeout: Duration?) async throws -> [RESPValue] {
        try await redis.exclusive(commands, timeout: timeout)
    }

    public func transaction(_ commands: [RedisCommand], timeout: Duration?) async throws -> [RESPValue] {
        try await redis.transaction(commands, timeout: timeout)
    }

    public func block(
        _ command: BlockingCommand, timeout: Duration?, giveBack: @escaping @Sendable (RESPValue) async -> Void
    ) async throws -> RESPValue? { try await redis.block(command, timeout: timeout, giveBack: giveBack) }

    public func publish(_ payload: RedisArgument, to channel: SubscriptionTopic) async throws -> Int {
        try await redis.publish(payload, to: channel)
    }

    public func subscribe(to topics: [SubscriptionTopic], buffer: SubscriptionBuffer) async throws -> Subscription {
        try await redis.subscribe(to: topics, buffer: buffer)
    }
}
