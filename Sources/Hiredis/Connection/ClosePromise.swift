import NIOConcurrencyHelpers

/// The end of a connection, which any number of tasks can await at any time.
final class ClosePromise: Sendable {
    private struct State {
        var reason: RedisError?
        var waiters: [CheckedContinuation<RedisError, Never>] = []
    }
    private let state = NIOLockedValueBox(State())

    var isFinished: Bool { state.withLockedValue { $0.reason != nil } }

    /// Ends the wait of all tasks. The first reason counts.
    func finish(_ reason: RedisError) {
        let waiters = state.withLockedValue { state in
            state.reason = state.reason ?? reason
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume(returning: reason) }
    }

    /// Waits for the end and returns its reason.
    func value() async -> RedisError {
        await withCheckedContinuation { continuation in
            let reason = state.withLockedValue { state in
                if state.reason == nil { state.waiters.append(continuation) }
                return state.reason
            }
            if let reason { continuation.resume(returning: reason) }
        }
    }
}
