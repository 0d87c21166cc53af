// A Redis that does something else than a client in some ways, and the same in all others.
package import Hiredis

/// Passes every call on to a client; a test's type says only what is different.
package protocol RedisDecorator: EventLoopRedis, ForwardingRedis {
    var redis: RedisClient { get }
}

extension RedisDecorator {
    package var target: any Redis { redis }

    package var serialExecutor: any SerialExecutor { redis.serialExecutor }

    package var isCurrent: Bool { redis.isCurrent }

    package func execute(_ body: @escaping @Sendable () -> Void) { redis.execute(body) }

    package var connectionFailure: RedisError? { redis.connectionFailure }

    package func drain(
        _ subscription: Subscription, isolation: isolated (any Actor)?,
        into sink: @escaping @Sendable (SubscriptionEvent) -> Void
    ) async throws(RedisError) { try await redis.drain(subscription, isolation: isolation, into: sink) }

    package func sendFirst(
        for key: String?, _ body: @escaping @Sendable (NewConnection) async -> Void
    ) -> (@Sendable () -> Void)? {
        redis.sendFirst(for: key, body)
    }

    package func post(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration?,
        completion: @escaping @Sendable (Result<RESPValue, RedisError>) -> Void
    ) { redis.post(script, keys: keys, arguments: arguments, timeout: timeout, completion: completion) }
}
