// How an actor runs a state machine that callers wait on: entering its executor, waiting, cancelling, and the timer.
//
// The engine and the mailboxes' listeners are such actors. Each adds what is its own: the machine, the requests that it
// sends, and what it does with the machine's actions.
import Synchronization

/// An actor on the client's executor that runs a state machine on behalf of callers who wait for results.
package protocol WaiterRunner: Actor {
    /// What a call keeps while it is in progress.
    associatedtype Progress: Sendable
    /// The result of a call.
    associatedtype Output: Sendable
    /// The error of a call.
    associatedtype Failure: Error
    /// A call in progress.
    typealias Operation = PendingOperation<Progress, Output, Failure>

    /// The time that deadlines are measured by.
    nonisolated var clock: MonotonicClock { get }
    /// The calls that wait, and the timer. See ``RunnerState``.
    var runner: RunnerState<Operation> { get set }
    /// The error of a call whose task was cancelled.
    nonisolated static var cancellation: Failure { get }

    /// Runs `body` on the actor's executor: immediately when the caller is on it, else soon.
    nonisolated func execute(_ body: @escaping @Sendable () -> Void)
    /// Gives a new call to the state machine.
    func begin(_ operation: Operation)
    /// Tells the state machine that a caller no longer waits. The call ends when nothing is held for it.
    func abandon(_ id: UInt64, _ error: Failure)
    /// When the state machine next needs to look at the clock.
    var nextTick: Duration? { get }
    /// Lets the state machine look at the clock.
    func tick()
}

/// The part of an actor's state that ``WaiterRunner`` manages.
package struct RunnerState<Operation: Sendable>: Sendable {
    /// Calls that have not ended.
    package var operations: [UInt64: Operation] = [:]
    @usableFromInline package var timer: Task<Void, Never>?
    @usableFromInline package var timerAt: Duration?

    package init() {}

    /// Stops the timer. Nothing starts it again until ``WaiterRunner/arm()``.
    package mutating func stopTimer() {
        timer?.cancel()
        (timer, timerAt) = (nil, nil)
    }
}

extension WaiterRunner {
    /// Runs `body` isolated to the actor. A task on the client's executor does not change its executor for it.
    @inlinable
    package nonisolated func enter(_ body: @escaping @Sendable (isolated Self) -> Void) {
        execute { self.assumeIsolated { body($0) } }
    }

    /// Returns when the operation has its result. When the task is cancelled, that is as soon as nothing is held.
    @inlinable
    package nonisolated func carryOut(_ operation: Operation) async {
        await withTaskCancellationHandler {
            await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
                operation.continuation = continuation
                start(operation)
            }
        } onCancel: {
            cancel(operation.id)
        }
    }

    /// Returns when the operation has its result, whether the task is cancelled or not.
    @inlinable
    package nonisolated func carryOutUncancellably(_ operation: Operation) async {
        await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
            operation.continuation = continuation
            enter { $0.admit(operation) }
        }
    }

    @inlinable
    package nonisolated func start(_ operation: Operation) {
        if Task.isCancelled {
            operation.finish(.failure(Self.cancellation))
            return
        }
        enter { $0.admit(operation) }
        // A cancellation that came before this found nothing to cancel.
        if Task.isCancelled { cancel(operation.id) }
    }

    @inlinable
    package nonisolated func cancel(_ id: UInt64) {
        enter { $0.abandon(id, Self.cancellation) }
    }

    @inlinable
    package func admit(_ operation: Operation) {
        runner.operations[operation.id] = operation
        begin(operation)
    }

    /// Ends a call, if it has not ended before.
    @inlinable
    package func finish(_ id: UInt64, _ result: Result<Output, Failure>) {
        runner.operations.removeValue(forKey: id)?.finish(result)
    }

    /// Sets the timer for the state machine's next tick. Call it after every event.
    @inlinable
    package func arm() {
        guard let next = nextTick else { return }
        if let timerAt = runner.timerAt, timerAt <= next { return }
        runner.timer?.cancel()
        runner.timerAt = next
        runner.timer = Task {
            try? await clock.sleep(max(.zero, next - clock.now()))
            if Task.isCancelled { return }
            runner.timerAt = nil
            tick()
        }
    }
}

/// Gives calls their ids, from any thread.
package final class OperationIDs: Sendable {
    private let last = Atomic<UInt64>(0)

    package init() {}

    package func next() -> UInt64 { last.wrappingAdd(1, ordering: .relaxed).newValue }
}
