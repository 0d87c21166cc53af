// A Redis whose every call a test can stop, delay, or do something before.
import Hiredis
import Synchronization

/// Calls `before` with each script and each command on its way, and does not send it when that throws; calls `after` when
/// its reply is there, and loses the reply when that throws.
final class InterposedRedis: Redis {
    typealias Hook = @Sendable (_ keys: [String]) async throws -> Void
    private let redis: RedisClient
    private let before: Hook
    private let after: Hook
    private let beforePost: (@Sendable (RedisScript) async -> Void)?

    /// - Parameter beforePost: those that are posted wait for it, each for itself.
    init(
        _ redis: RedisClient, before: @escaping Hook = { _ in }, after: @escaping Hook = { _ in },
        beforePost: (@Sendable (RedisScript) async -> Void)? = nil
    ) { (self.redis, self.before, self.after, self.beforePost) = (redis, before, after, beforePost) }

    func script(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration?
    ) async throws -> RESPValue {
        try await before(keys)
        let reply = try await redis.script(script, keys: keys, arguments: arguments, timeout: timeout)
        try await after(keys)
        return reply
    }

    func send(
        _ command: RedisCommand, timeout: Duration?, settle: (@Sendable (RESPValue) -> Void)?
    ) async throws -> RESPValue {
        try await before([command.name])
        let reply = try await redis.send(command, timeout: timeout, settle: settle)
        try await after([command.name])
        return reply
    }

    // MARK: Unchanged

    var serialExecutor: any SerialExecutor { redis.serialExecutor }

    func execute(_ body: @escaping @Sendable () -> Void) { redis.execute(body) }

    func post(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration?,
        completion: @escaping @Sendable (Result<RESPValue, RedisError>) -> Void
    ) {
        guard let beforePost else {
            redis.post(script, keys: keys, arguments: arguments, timeout: timeout, completion: completion)
            return
        }
        Task {
            await beforePost(script)
            redis.post(script, keys: keys, arguments: arguments, timeout: timeout, completion: completion)
        }
    }

    func pipeline(_ commands: [RedisCommand], timeout: Duration?) async throws -> [RESPValue] {
        try await redis.pipeline(commands, timeout: timeout)
    }

    func exclusive(_ commands: [RedisCommand], timeout: Duration?) async throws -> [RESPValue] {
        try await redis.exclusive(commands, timeout: timeout)
    }

    func transaction(_ commands: [RedisCommand], timeout: Duration?) async throws -> [RESPValue] {
        try await redis.transaction(commands, timeout: timeout)
    }

    func block(
        _ command: BlockingCommand, timeout: Duration?, giveBack: @escaping @Sendable (RESPValue) async -> Void
    ) async throws -> RESPValue? { try await redis.block(command, timeout: timeout, giveBack: giveBack) }

    func publish(_ payload: RedisArgument, to channel: SubscriptionTopic) async throws -> Int {
        try await redis.publish(payload, to: channel)
    }

    func subscribe(to topics: [SubscriptionTopic], buffer: SubscriptionBuffer) async throws -> Subscription {
        try await redis.subscribe(to: topics, buffer: buffer)
    }
}
