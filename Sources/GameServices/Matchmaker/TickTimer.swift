import CoordinationBase
import Hiredis

/// The times at which a node's own tickets widen or time out, and a sleep until the next of them.
final class TickTimer: Sendable {
    private struct State {
        /// In descending order, so that the next one is at the end.
        var times: [Duration] = []
        var sleeper: Task<Void, Never>?
        var sleepsUntil = Duration.zero
    }
    private let state = Locked(State())
    private let clock: MonotonicClock
    /// Times are rounded up to it, so that one tick serves many tickets.
    private static let grain = Duration.milliseconds(5)

    init(clock: MonotonicClock) { self.clock = clock }

    /// Adds times, and ends the sleep if one of them is earlier than its end.
    func add(_ times: [Duration]) {
        let sleeper = state.withLock { state -> Task<Void, Never>? in
            for time in times {
                let rounded = Self.grain * Int(((time + Self.grain) / Self.grain).rounded(.down))
                var (low, high) = (0, state.times.count)
                while low < high {
                    let middle = (low + high) / 2
                    if state.times[middle] > rounded { low = middle + 1 } else { high = middle }
                }
                if low == state.times.count || state.times[low] != rounded { state.times.insert(rounded, at: low) }
            }
            guard let next = state.times.last, next < state.sleepsUntil else { return nil }
            return state.sleeper
        }
        sleeper?.cancel()
    }

    /// Adds the times at which a ticket's window widens, and its timeout.
    ///
    /// - Parameter start: when the ticket began to wait, or later.
    func add(_ window: MatchWindow, _ timeout: Duration?, from start: Duration) {
        add((0..<window.widenings).map { start + window.interval * ($0 + 1) } + (timeout.map { [start + $0] } ?? []))
    }

    /// Sleeps until the next time, for at most a duration, or until the task is cancelled.
    func sleep(atMost duration: Duration) async {
        let deadline = clock.now() + duration
        // A new time that is earlier ends the sleep, and begins another one.
        while !Task.isCancelled, let sleeper = nextSleep(until: deadline) {
            await withTaskCancellationHandler {
                await sleeper.value
            } onCancel: {
                sleeper.cancel()
            }
        }
        let now = clock.now()
        state.withLock { state in
            state.sleepsUntil = .zero
            while let next = state.times.last, next <= now { state.times.removeLast() }
        }
    }

    /// Returns a task that sleeps until the next time or a deadline; `nil` when one of them has passed.
    private func nextSleep(until deadline: Duration) -> Task<Void, Never>? {
        state.withLock { state in
            let now = clock.now()
            let end = min(deadline, state.times.last ?? deadline)
            guard end > now else { return nil }
            let task = Task { [clock] in _ = try? await clock.sleep(end - now) }
            (state.sleeper, state.sleepsUntil) = (task, end)
            return task
        }
    }
}
