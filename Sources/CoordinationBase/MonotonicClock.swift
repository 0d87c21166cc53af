// Time, injectable.
import Hiredis

/// The process's monotonic clock, which also runs while the machine sleeps, or a test's.
package struct MonotonicClock: Sendable {
    package var now: @Sendable () -> Duration
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
