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
    /// - Throws: the first error that is not transient, or the last error when the time is up. Its
    ///   `mayHaveRun` is true if any of the attempts may have taken effect.
    func run(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], until end: Duration
    ) async throws(GameServiceError) -> RESPValue {
        var pause = Duration.milliseconds(20)
        var mayHaveRun = false
        while true {
            let failure: RedisError
            do throws(RedisError) {
                let timeout = max(.milliseconds(1), min(end - clock.now(), callTimeout / 2))
                return try await redis.script(script, keys: keys, arguments: arguments, timeout: timeout)
            } catch { failure = error }
            mayHaveRun = mayHaveRun || failure.mayHaveRun
            guard failure.isTransient, clock.now() + pause < end else {
                var error = GameServiceError(failure)
                error.mayHaveRun = mayHaveRun
                throw error
            }
            do { try await clock.sleep(pause) } catch {
                throw GameServiceError(.cancelled, "the task was cancelled", mayHaveRun: mayHaveRun)
            }
            pause = min(pause * 2, .seconds(1))
        }
    }
}
