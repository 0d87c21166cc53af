// Retries of idempotent requests.
import Hiredis

/// Sends a request, and sends it again after a growing pause while it fails with a transient error.
///
/// The request must be idempotent: it may reach the server several times.
///
/// - Parameters:
///   - end: the time, by `clock`, at which the retries end.
///   - type: the type of the errors.
/// - Throws: the first error that is not transient, or the last error when the time is up. Its
///   `mayHaveRun` is true if any of the attempts may have taken effect.
package func repeating<Value, Failure: CodedError>(
    until end: Duration, _ clock: MonotonicClock, throwing type: Failure.Type,
    _ request: () async throws -> Value
) async throws(Failure) -> Value {
    var pause = Duration.milliseconds(20)
    var mayHaveRun = false
    while true {
        var failure: Failure
        do { return try await request() } catch { failure = Failure(error) }
        mayHaveRun = mayHaveRun || failure.mayHaveRun
        failure.mayHaveRun = mayHaveRun
        guard failure.isTransient, clock.now() + pause < end else { throw failure }
        do { try await clock.sleep(pause) } catch {
            throw Failure(.cancelled, "the task was cancelled", mayHaveRun: mayHaveRun, underlying: nil)
        }
        pause = min(pause * 2, .seconds(1))
    }
}
