// A Redis that does something else than a client in some ways, and the same in all others.
package import Hiredis

/// Passes every call on; a test's type says only what is different.
package protocol RedisDecorator: EventLoopRedis {
    var redis: RedisClient { get }
}

extension RedisDecorator {
    package var serialExecutor: any SerialExecutor { redis.serialExecutor }

    package var isCurrent: Bool { redis.isCurrent }

    package func execute(_ body: @escaping @Sendable () -> Void) { redis.execute(body) }

    package var connectionFailure: RedisError? { redis.connectionFailure }

    package func drain(
        _ subscription: Subscription, isolation: isolated (any Actor)?,
        into sink: @escaping @Sendable (SubscriptionEvent) -> Void
    ) async throws(RedisError) { try await redis.drain(subscription, isolation: isolation, into: sink) }

    package func sendFirst(
        for key: String?, _ make: @escaping @Sendable () async -> [FirstScript]
    ) -> (@Sendable () -> Void)? {
        redis.sendFirst(for: key, make)
    }

    package func script(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration?
    ) async throws(RedisError) -> RESPValue {
        try await redis.script(script, keys: keys, arguments: arguments, timeout: timeout)
    }

    package func post(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration?,
        completion: @escaping @Sendable (Result<RESPValue, RedisError>) -> Void
    ) { redis.post(script, keys: keys, arguments: arguments, timeout: timeout, completion: completion) }

    package func send(
        _ command: RedisCommand, timeout: Duration?, settle: (@Sendable (RESPValue) -> Void)?
    ) async throws(RedisError) -> RESPValue { try await redis.send(command, timeout: timeout, settle: settle) }

    package func pipeline(_ commands: [RedisCommand], timeout: Duration?) async throws(RedisError) -> [RESPValue] {
        try await redis.pipeline(commands, timeout: timeout)
    }

    package func withDedicatedConnection<Value>(
        timeout: Duration?, _ body: (DedicatedConnection) async throws -> Value
    ) async throws -> Value { try await redis.withDedicatedConnection(timeout: timeout, body) }

    package func transaction(_ commands: [RedisCommand], timeout: Duration?) async throws(RedisError) -> [RESPValue] {
        try await redis.transaction(commands, timeout: timeout)
    }

    package func block(
        _ command: BlockingCommand, timeout: Duration?, giveBack: @escaping @Sendable (RESPValue) async -> Void
    ) async throws(RedisError) -> RESPValue? { try await redis.block(command, timeout: timeout, giveBack: giveBack) }

    package func publish(_ payload: RedisArgument, to channel: SubscriptionTopic) async throws(RedisError) -> Int {
        try await redis.publish(payload, to: channel)
    }

    package func subscribe(to topics: [SubscriptionTopic], buffer: SubscriptionBuffer) async throws(RedisError)
        -> Subscription
    {
        try await redis.subscribe(to: topics, buffer: buffer)
    }
}
