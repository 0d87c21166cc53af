// A Redis whose every call a test can stop, delay, or do something before.
import Hiredis
import Synchronization
import TestSupport

/// Calls `before` with each script and each command on its way, and does not send it when that throws; calls `after` when
/// its reply is there, and loses the reply when that throws.
final class InterposedRedis: RedisDecorator {
    typealias Hook = @Sendable (_ keys: [String]) async throws -> Void
    let redis: RedisClient
    private let before: Hook
    private let after: Hook

    init(
        _ redis: RedisClient, before: @escaping Hook = { _ in }, after: @escaping Hook = { _ in }
    ) { (self.redis, self.before, self.after) = (redis, before, after) }

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
}
