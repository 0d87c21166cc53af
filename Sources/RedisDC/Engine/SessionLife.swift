// The time until which a session certainly exists. Any thread can read it.
import Hiredis
import Synchronization

/// The end of a session by the process's own clock: until then Redis certainly keeps the session and its leases.
///
/// It is the time at which the last answered heartbeat was sent, plus the TTL, less a margin. A process that was
/// suspended finds it in the past as soon as it continues, before any timer fires.
final class SessionLife: Sendable {
    let id: String
    private let ends = Atomic<Int64>(.min)
    private let now: @Sendable () -> Duration

    init(id: String, now: @escaping @Sendable () -> Duration) {
        self.id = id
        self.now = now
    }

    /// The end, on the clock of `now`.
    var end: Duration { .nanoseconds(ends.load(ordering: .acquiring)) }

    var remaining: Duration { max(.zero, end - now()) }

    /// Moves the end.
    func extend(to end: Duration) {
        ends.store(end.nanoseconds, ordering: .releasing)
    }

    /// Ends the session now.
    func finish() { ends.store(.min, ordering: .releasing) }
}
