// Scripts that repair what a failover has lost, on a connection that nobody else has yet.
package import Hiredis

/// Runs scripts on a new connection, before all other users of the client.
package struct ConnectionScripts: Sendable {
    private let redis: any EventLoopRedis
    private let connection: NewConnection
    private let clock: MonotonicClock
    private let timeout: Duration
    private let end: Duration

    /// - Parameters:
    ///   - timeout: the maximum time of an attempt.
    ///   - end: the time at which the attempts end: others wait for the connection.
    package init(
        redis: any EventLoopRedis, connection: NewConnection, clock: MonotonicClock, timeout: Duration, end: Duration
    ) {
        (self.redis, self.connection, self.clock) = (redis, connection, clock)
        (self.timeout, self.end) = (timeout, end)
    }

    package enum Answer: Sendable {
        case reply(RESPValue)
        /// The server refuses the script.
        case refused
        /// The connection has ended, or the time is over.
        case interrupted
    }

    /// Runs a script, and runs it again after a growing pause while it fails with a transient error.
    package func run(_ script: RedisScript, keys: [String], arguments: [RedisArgument]) async -> Answer {
        var pause = Duration.milliseconds(20)
        while !connection.isClosed, clock.now() < end {
            switch await attempt(script, keys, arguments) {
            case .success(let reply): return .reply(reply)
            case .failure(let error) where !error.isTransient: return .refused
            case .failure: break
            }
            do { try await clock.sleep(pause) } catch { return .interrupted }
            pause = min(pause * 2, .seconds(1))
        }
        return .interrupted
    }

    private func attempt(
        _ script: RedisScript, _ keys: [String], _ arguments: [RedisArgument]
    ) async -> Result<RESPValue, RedisError> {
        await withCheckedContinuation { continuation in
            redis.execute {
                connection.post(script, keys: keys, arguments: arguments, timeout: timeout) {
                    continuation.resume(returning: $0)
                }
            }
        }
    }
}
