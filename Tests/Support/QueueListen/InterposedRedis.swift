import Hiredis
import Synchronization
import TestSupport

/// A Redis with hooks around each script and each command.
///
/// It calls `before` with the keys, and sends nothing if that throws; it calls `after` when the
/// reply has arrived, and loses the reply if that throws.
final class InterposedRedis: RedisDecorator {
    typealias Hook = @Sendable (_ keys: [String]) async throws -> Void
    let redis: RedisClient
    private let before: Hook
    private let after: Hook
    private let beforePost: (@Sendable (RedisScript) async -> Void)?

    /// - Parameter beforePost: called before each posted script, which is sent when it has
    ///   returned.
    init(
        _ redis: RedisClient, before: @escaping Hook = { _ in }, after: @escaping Hook = { _ in },
        beforePost: (@Sendable (RedisScript) async -> Void)? = nil
    ) { (self.redis, self.before, self.after, self.beforePost) = (redis, before, after, beforePost) }

    /// A Redis that loses each `nth` reply, of the calls whose keys contain `part` if that is
    /// given: the call has run, and its caller is told that the connection was lost.
    static func losing(every nth: Int, of redis: RedisClient, withKeysThatContain part: String? = nil)
        -> InterposedRedis
    {
        let calls = Atomic(0)
        return InterposedRedis(
            redis,
            after: { keys in
                if let part, !keys.contains(where: { $0.contains(part) }) { return }
                if calls.add(1, ordering: .relaxed).newValue.isMultiple(of: nth) {
                    throw RedisError(.connectionLost, "lost", mayHaveRun: true)
                }
            })
    }

    /// A hook's error takes the place of Redis's.
    private func call(_ hook: Hook, _ keys: [String]) async throws(RedisError) {
        do { try await hook(keys) } catch {
            throw error as? RedisError ?? RedisError(.serverError, "the hook failed: \(error)", underlying: error)
        }
    }

    func script(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration?
    ) async throws(RedisError) -> RESPValue {
        try await call(before, keys)
        let reply = try await redis.script(script, keys: keys, arguments: arguments, timeout: timeout)
        try await call(after, keys)
        return reply
    }

    func send(
        _ command: RedisCommand, timeout: Duration?, settle: (@Sendable (RESPValue) -> Void)?
    ) async throws(RedisError) -> RESPValue {
        try await call(before, [command.name])
        let reply = try await redis.send(command, timeout: timeout, settle: settle)
        try await call(after, [command.name])
        return reply
    }

    func post(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration?,
        completion: @escaping @Sendable (Result<RESPValue, RedisError>) -> Void
    ) {
        let redis = redis
        guard let beforePost else {
            redis.post(script, keys: keys, arguments: arguments, timeout: timeout, completion: completion)
            return
        }
        Task {
            await beforePost(script)
            redis.execute {
                redis.post(script, keys: keys, arguments: arguments, timeout: timeout, completion: completion)
            }
        }
    }
}
