// Waits for one of two events: a body returns, or its lease is lost.
import Hiredis

/// The first of two events: the body has returned, or its lease was lost.
final class BodyEnd: Sendable {
    enum Reason { case finished, lost }

    private enum State {
        case open
        case awaited(CheckedContinuation<Reason, Never>)
        case reached(Reason)
    }
    private let state = Locked(State.open)

    /// Records the event, unless the other one came first.
    func reach(_ reason: Reason) {
        let continuation = state.withLock { state -> CheckedContinuation<Reason, Never>? in
            switch state {
            case .open:
                state = .reached(reason)
                return nil
            case .awaited(let continuation):
                state = .reached(reason)
                return continuation
            case .reached: return nil
            }
        }
        continuation?.resume(returning: reason)
    }

    /// Waits for the first event. Only one task may wait.
    func value() async -> Reason {
        await withCheckedContinuation { continuation in
            let reason = state.withLock { state -> Reason? in
                if case .reached(let reason) = state { return reason }
                state = .awaited(continuation)
                return nil
            }
            if let reason { continuation.resume(returning: reason) }
        }
    }
}
