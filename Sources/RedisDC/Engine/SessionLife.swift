// How long a session certainly lives, to be asked from any thread at any time.
import Hiredis
import Synchronization

/// The local end of a session: until then, and not a moment longer, Redis certainly keeps what it holds.
///
/// It is the start of the last heartbeat that was answered, plus the TTL, less a margin, on the process's own clock. A
/// process that was stopped and goes on finds it passed before any timer tells it.
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

    func prolong(to end: Duration) {
        ends.store(end.nanoseconds, ordering: .releasing)
    }

    func finish() { ends.store(.min, ordering: .releasing) }
}
