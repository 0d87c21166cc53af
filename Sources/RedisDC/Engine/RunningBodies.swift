// The running bodies of `withLock` and its siblings. A shutdown waits for them.
import CoordinationBase
import Hiredis

/// Counts running bodies, and waits until there are none.
final class RunningBodies: Sendable {
    private struct State {
        var count = 0
        var waiter: CheckedContinuation<Void, Never>?

        mutating func takeWaiter() -> CheckedContinuation<Void, Never>? {
            defer { waiter = nil }
            return waiter
        }
    }
    private let state = Locked(State())

    func begin() { state.withLock { $0.count += 1 } }

    func end() {
        state.withLock { state in
            state.count -= 1
            return state.count == 0 ? state.takeWaiter() : nil
        }?.resume()
    }

    /// Returns when no body is running, or after `limit`.
    func waitForEnd(within limit: Duration, _ clock: MonotonicClock) async {
        let timeout = Task { [state] in
            try? await clock.sleep(limit)
            state.withLock { $0.takeWaiter() }?.resume()
        }
        await withCheckedContinuation { continuation in
            let hasEnded = state.withLock { state in
                if state.count > 0 { state.waiter = continuation }
                return state.count == 0
            }
            if hasEnded { continuation.resume() }
        }
        timeout.cancel()
    }
}
