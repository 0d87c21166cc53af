import NIOConcurrencyHelpers
import NIOCore

/// The counters of a proxy, and the tasks that wait for them to change.
final class ProxyCounterStore: Sendable {
    typealias Counters = FaultProxy.Counters

    private struct Waiter {
        let condition: @Sendable (Counters) -> Bool
        let continuation: CheckedContinuation<Void, any Error>
    }

    private struct State {
        var counters = Counters()
        var waiters: [Int: Waiter] = [:]
        /// The tasks that wait for the last connection to close.
        var closers: [CheckedContinuation<Void, Never>] = []
        var nextID = 0
        var isStopped = false
    }

    private let state = NIOLockedValueBox(State())

    var counters: Counters { self.state.withLockedValue { $0.counters } }

    /// Changes the counters and resumes the tasks whose conditions now hold.
    func update(_ change: (inout Counters) -> Void) {
        let (satisfied, closers) = self.state.withLockedValue {
            state -> ([Waiter], [CheckedContinuation<Void, Never>]) in
            change(&state.counters)
            let ids = state.waiters.filter { $0.value.condition(state.counters) }.keys
            let satisfied = ids.compactMap { state.waiters.removeValue(forKey: $0) }
            guard state.counters.openConnections == 0 else { return (satisfied, []) }
            defer { state.closers = [] }
            return (satisfied, state.closers)
        }
        for waiter in satisfied { waiter.continuation.resume() }
        for closer in closers { closer.resume() }
    }

    /// Fails pending waits, and future waits whose condition does not already hold.
    func stop() {
        let waiters = self.state.withLockedValue { state in
            state.isStopped = true
            defer { state.waiters = [:] }
            return state.waiters.values
        }
        for waiter in waiters { waiter.continuation.resume(throwing: Self.stopped) }
    }

    /// Waits until a condition holds; see ``FaultProxy/waitUntil(within:_:)``.
    func wait(
        within timeout: Duration, on loop: any EventLoop, until condition: @escaping @Sendable (Counters) -> Bool
    ) async throws {
        let id = self.state.withLockedValue { state in
            defer { state.nextID += 1 }
            return state.nextID
        }
        let timer = NIOLockedValueBox<Scheduled<Void>?>(nil)
        defer { timer.withLockedValue { $0 }?.cancel() }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                self.add(Waiter(condition: condition, continuation: continuation), id: id)
                // Only now: a timer that fires before the waiter is registered would find nothing to fail.
                let scheduled = loop.scheduleTask(in: TimeAmount(timeout)) {
                    self.fail(id, with: self.timedOut(timeout))
                }
                timer.withLockedValue { $0 = scheduled }
            }
        } onCancel: {
            self.fail(id, with: CancellationError())
        }
    }

    /// Waits until no connection is open.
    ///
    /// It also works after ``stop()``. Cancelling the task does not shorten the wait.
    func waitUntilAllClosed() async {
        await withCheckedContinuation { continuation in
            let isDone = self.state.withLockedValue { state in
                if state.counters.openConnections > 0 { state.closers.append(continuation) }
                return state.counters.openConnections == 0
            }
            if isDone { continuation.resume() }
        }
    }

    private func add(_ waiter: Waiter, id: Int) {
        let outcome: Result<Void, any Error>? = self.state.withLockedValue { state in
            if waiter.condition(state.counters) { return .success(()) }
            if state.isStopped { return .failure(Self.stopped) }
            // An earlier cancellation found no waiter to fail.
            if Task.isCancelled { return .failure(CancellationError()) }
            state.waiters[id] = waiter
            return nil
        }
        if let outcome { waiter.continuation.resume(with: outcome) }
    }

    private func fail(_ id: Int, with error: any Error) {
        let waiter = self.state.withLockedValue { $0.waiters.removeValue(forKey: id) }
        waiter?.continuation.resume(throwing: error)
    }

    private func timedOut(_ timeout: Duration) -> FaultProxyError {
        FaultProxyError(
            code: .timedOut,
            description: "the condition did not hold within \(timeout): compare it with the counters, \(self.counters)")
    }

    private static let stopped = FaultProxyError(
        code: .stopped, description: "the proxy was stopped before the condition held: wait before calling stop()")
}
