// A clock that tests can replace.
import Hiredis

/// A monotonic clock: the system's, which also advances while the machine sleeps, or a test's.
package struct MonotonicClock: Sendable {
    /// Returns the time since the clock was created.
    package var now: @Sendable () -> Duration
    /// Suspends the task for a duration. Throws when the task is cancelled.
    package var sleep: @Sendable (Duration) async throws -> Void

    package init(now: @escaping @Sendable () -> Duration, sleep: @escaping @Sendable (Duration) async throws -> Void) {
        (self.now, self.sleep) = (now, sleep)
    }

    /// Swift's continuous clock. A sleep lasts at most `Duration.maxSleep`.
    package static func continuous() -> MonotonicClock {
        let start = ContinuousClock.now
        return MonotonicClock(
            now: { ContinuousClock.now - start },
            sleep: { try await Task.sleep(for: min($0, .maxSleep)) })
    }
}
