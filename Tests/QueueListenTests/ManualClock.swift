import Hiredis
import CoordinationBase
import Hiredis

/// A clock whose time passes only when the test says so.
final class ManualClock: Sendable {
    private struct Sleeper {
        var wakesAt: Duration
        var continuation: CheckedContinuation<Void, any Error>
    }

    private struct State {
        var now = Duration.zero
        var lastID = 0
        var sleepers: [Int: Sleeper] = [:]
    }

    private let state = Locked(State())

    var clock: MonotonicClock {
        MonotonicClock(now: { self.state.withLock { $0.now } }, sleep: { try await self.sleep($0) })
    }

    /// The remaining times of the present sleepers, the shortest first.
    var sleeps: [Duration] { state.withLock { state in state.sleepers.values.map { $0.wakesAt - state.now }.sorted() } }

    func advance(by duration: Duration) {
        let due = state.withLock { state in
            state.now += duration
            let due = state.sleepers.filter { $0.value.wakesAt <= state.now }
            for id in due.keys { state.sleepers[id] = nil }
            return due.values.map(\.continuation)
        }
        for continuation in due { continuation.resume() }
    }

    private func sleep(_ duration: Duration) async throws {
        let id = state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                state.withLock { state in
                    state.sleepers[id] = Sleeper(wakesAt: state.now + duration, continuation: continuation)
                }
                // A cancellation before this line found nothing to cancel.
                if Task.isCancelled { cancel(id) }
            }
        } onCancel: {
            cancel(id)
        }
    }

    private func cancel(_ id: Int) {
        let sleeper = state.withLock { $0.sleepers.removeValue(forKey: id) }
        sleeper?.continuation.resume(throwing: CancellationError())
    }
}
