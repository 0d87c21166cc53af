import NIOConcurrencyHelpers
import NIOCore

/// Wakes an open stream at its times, on an event loop: a task that sleeps would need several kilobytes for each stream.
final class StreamTimer: NIOScheduledCallbackHandler, Sendable {
    private struct State {
        var times: StreamTimes
        var callback: NIOScheduledCallback?
        var isStopped = false
    }

    private let eventLoop: any EventLoop
    private let state: NIOLockedValueBox<State>
    private let writingSince: @Sendable () -> StreamTimes.Instant?
    private let act: @Sendable (StreamTimes.Action) -> Void

    /// - Parameters:
    ///   - writingSince: the time at which the write began that is under way.
    ///   - act: called on the event loop.
    init(
        _ times: StreamTimes, on eventLoop: any EventLoop, writingSince: @escaping @Sendable () -> StreamTimes.Instant?,
        _ act: @escaping @Sendable (StreamTimes.Action) -> Void
    ) {
        self.eventLoop = eventLoop
        self.writingSince = writingSince
        self.act = act
        state = NIOLockedValueBox(State(times: times))
        arm()
    }

    /// No action begins afterwards on the event loop, except for one that is under way.
    func stop() {
        let callback = state.withLockedValue { state in
            state.isStopped = true
            return state.callback.take()
        }
        callback?.cancel()
    }

    func handleScheduledCallback(eventLoop: some EventLoop) {
        let now = StreamTimes.Instant.now
        let since = writingSince()
        let actions = state.withLockedValue { state in
            state.isStopped ? [] : state.times.actions(at: now, writingSince: since)
        }
        for action in actions { act(action) }
        arm()
    }

    private func arm() {
        let now = StreamTimes.Instant.now
        state.withLockedValue { state in
            guard !state.isStopped else { return }
            let delay = state.times.wakeUp(after: now) - now
            // An event loop that has shut down calls nothing: its connections have ended.
            state.callback = try? eventLoop.scheduleCallback(in: TimeAmount(delay), handler: self)
        }
    }
}
