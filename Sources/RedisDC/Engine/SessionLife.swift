// How long a session certainly lives. Any thread can ask at any time.
import Hiredis
import Synchronization

/// The end of a session by the process's own clock: until then Redis certainly keeps what the session holds.
///
/// It is the start of the last heartbeat that was answered, plus the TTL, less a margin. A process that was stopped and
/// continues finds it in the past before any timer fires.
final class SessionLife: Sendable {
    let id: String
    private let ends = Atomic<Int64>(.min)
    private let now: @Sendable () -> Duration

    init(id: String, now: @escaping @Sendable () -> Duration) {
        self.id = id
        self.now = now
    }

    /// On the clock of `now`.
    var end: Duration { .nanoseconds(ends.load(ordering: .acquiring)) }

    var remaining: Duration { max(.zero, end - now()) }

    func extend(to end: Duration) {
        ends.store(end.nanoseconds, ordering: .releasing)
    }

    /// Ends the session now.
    func finish() { ends.store(.min, ordering: .releasing) }
}
