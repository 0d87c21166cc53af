// Waits for one of two events: a body returns, or its lease is lost.
import Synchronization

/// The first of two events: the body has returned, or its lease was lost.
///
/// `@unchecked`: `continuation` is written before `phase` becomes `awaited`, with release ordering, and read once after
/// that, by the thread that changes `phase` again.
final class BodyEnd: @unchecked Sendable {
    enum Reason { case finished, lost }

    private enum Phase: UInt8, AtomicRepresentable {
        case open
        case awaited
        case finished
        case lost

        var reason: Reason? {
            switch self {
            case .open, .awaited: nil
            case .finished: .finished
            case .lost: .lost
            }
        }
    }
    private let phase = Atomic<Phase>(.open)
    private var continuation: UnsafeContinuation<Reason, Never>?

    /// Records the event, unless the other one came first.
    func reach(_ reason: Reason) {
        let end = reason == .finished ? Phase.finished : .lost
        let (isFirst, found) = phase.compareExchange(
            expected: .open, desired: end, ordering: .acquiringAndReleasing)
        if isFirst || found != .awaited { return }
        if phase.compareExchange(expected: .awaited, desired: end, ordering: .acquiringAndReleasing).exchanged {
            continuation?.resume(returning: reason)
        }
    }

    /// Whether one of the events has happened.
    var isReached: Bool { phase.load(ordering: .acquiring).reason != nil }

    /// Waits for the first event. Only one task may wait.
    func value() async -> Reason {
        await withUnsafeContinuation { continuation in
            self.continuation = continuation
            let (isOpen, found) = phase.compareExchange(
                expected: .open, desired: .awaited, ordering: .acquiringAndReleasing)
            if !isOpen, let reason = found.reason { continuation.resume(returning: reason) }
        }
    }
}
