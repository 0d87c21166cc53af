// Scripts that are sent again until they are answered.
import CoordinationBase
import Hiredis

/// Runs scripts that may reach the server several times, because their effect is identified by an
/// argument.
struct IdempotentScript: Sendable {
    let redis: any Redis
    let clock: MonotonicClock
    /// The maximum time of all attempts together.
    let callTimeout: Duration

    /// Runs a script, and runs it again after a growing pause while it fails with a transient error.
    ///
    /// - Parameter end: the time, by `clock`, at which the attempts end.
    /// - Throws: what `repeating` throws.
    func run(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], until end: Duration
    ) async throws(GameServiceError) -> RESPValue {
        try await repeating(until: end, clock, throwing: GameServiceError.self) {
            let timeout = max(.milliseconds(1), min(end - clock.now(), callTimeout / 2))
            return try await redis.script(script, keys: keys, arguments: arguments, timeout: timeout)
        }
    }
}
