// Retries of idempotent requests.
import Hiredis
import CoordinationBase

/// Sends a request, and sends it again after a growing pause while it fails with a transient error.
///
/// The request must be idempotent: it may reach the server several times.
///
/// - Parameters:
///   - end: the time, by `clock`, at which the retries end.
/// - Throws: the first error that is not transient, or the last error when the time is up. Its
///   `mayHaveRun` is true if any of the attempts may have taken effect.
func repeating<Value>(
    until end: Duration, _ clock: MonotonicClock, _ request: () async throws -> Value
) async throws(QueueListenError) -> Value {
    var pause = Duration.milliseconds(20)
    var mayHaveRun = false
    while true {
        do { return try await request() } catch {
            var failure = QueueListenError(error)
            mayHaveRun = mayHaveRun || failure.mayHaveRun
            failure.mayHaveRun = mayHaveRun
            guard let error = error as? RedisError, error.isTransient, clock.now() + pause < end else { throw failure }
            do { try await clock.sleep(pause) } catch {
                throw QueueListenError(.cancelled, "the task was cancelled", mayHaveRun: mayHaveRun)
            }
            pause = min(pause * 2, .seconds(1))
        }
    }
}
