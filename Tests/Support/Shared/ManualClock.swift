// A clock that a test moves.
package import CoordinationBase
import Hiredis

/// Time stands still until ``advance(by:)``.
package final class ManualClock: Sendable {
    private struct Sleeper {
        var id: Int
        var end: Duration
        var continuation: CheckedContinuation<Void, any Error>
    }
    private struct State {
        var now = Duration.zero
        var lastID = 0
        var sleepers: [Sleeper] = []
        var cancelled: Set<Int> = []
    }
    private let state = Locked(State())

    package init() {}

    package var clock: MonotonicClock {
        MonotonicClock(now: { self.now }, sleep: { try await self.sleep($0) })
    }

    package var now: Duration { state.withLock { $0.now } }

    /// The remaining times of the present sleepers, in the order in which they began.
    package var sleeps: [Duration] { state.withLock { state in state.sleepers.map { $0.end - state.now } } }

    package func advance(by duration: Duration) {
        let woken = state.withLock { state in
            state.now += duration
            let now = state.now
            defer { state.sleepers.removeAll { $0.end <= now } }
            return state.sleepers.filter { $0.end <= now }
        }
        for sleeper in woken { sleeper.continuation.resume() }
    }

    private func sleep(_ duration: Duration) async throws {
        let id = state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let result = state.withLock { state -> Result<Void, any Error>? in
                    if state.cancelled.remove(id) != nil { return .failure(CancellationError()) }
                    if duration <= .zero { return .success(()) }
                    state.sleepers.append(Sleeper(id: id, end: state.now + duration, continuation: continuation))
                    return nil
                }
                if let result { continuation.resume(with: result) }
            }
        } onCancel: {
            let sleeper = state.withLock { state -> Sleeper? in
                guard let index = state.sleepers.firstIndex(where: { $0.id == id }) else {
                    state.cancelled.insert(id)
                    return nil
                }
                return state.sleepers.remove(at: index)
            }
            sleeper?.continuation.resume(throwing: CancellationError())
        }
    }
}
