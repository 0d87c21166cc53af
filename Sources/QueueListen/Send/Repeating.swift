// A request is sent again while its failure is one that passes.
import Hiredis
import CoordinationBase

/// Carries a request out, again after a pause, until there is an answer or the time is up. It must have one effect however
/// often it is sent.
///
/// - Throws: what cannot pass, or the last failure. It `mayHaveRun` if any attempt may have.
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
