// An actor that runs a state machine for waiting callers: entering its executor, waiting, cancelling, and the timer.
//
// The engine and the mailboxes' listeners are such actors. Each adds its own machine, its requests, and how it carries
// out the machine's actions.
import Synchronization

/// An actor on the client's executor that runs a state machine on behalf of callers who wait for results.
package protocol WaiterRunner: Actor {
    /// The data of a call in progress.
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
    /// Passes a new call to the state machine.
    func begin(_ operation: Operation)
    /// Tells the state machine that a caller no longer waits. The machine ends the call when nothing is held for it, or
    /// after a time limit of its own; in the second case the release continues in the background.
    func abandon(_ id: UInt64, _ error: Failure)
    /// The time at which ``tick()`` must be called next; `nil` when there is none.
    var nextTick: Duration? { get }
    /// Lets the state machine handle the passing of time.
    func tick()

    /// Whether anything receives what ``reportLongWaits(_:)`` logs.
    nonisolated var reportsLongWaits: Bool { get }
    /// Logs what calls wait for and why: those of them that have no time limit.
    ///
    /// - Parameter calls: calls that have waited for long, the oldest first.
    func reportLongWaits(_ calls: [Operation])
}

/// The part of an actor's state that ``WaiterRunner`` manages.
package struct RunnerState<Operation: Sendable>: Sendable {
    /// Calls that have not ended.
    package var operations: [UInt64: Operation] = [:]
    @usableFromInline package var timer: Task<Void, Never>?
    @usableFromInline package var timerAt: Duration?
    /// Runs while there are calls, if long waits are reported.
    @usableFromInline package var longWaits: Task<Void, Never>?

    package init() {}

    /// Stops the timer until the next ``WaiterRunner/arm()``, and the reports of long waits.
    package mutating func stopTimer() {
        timer?.cancel()
        longWaits?.cancel()
        (timer, timerAt) = (nil, nil)
    }
}

extension WaiterRunner {
    /// Runs `body` isolated to the actor. A task on the client's executor calls it without a change of executor.
    @inlinable
    package nonisolated func enter(_ body: @escaping @Sendable (isolated Self) -> Void) {
        execute { self.assumeIsolated { body($0) } }
    }

    /// Returns when the operation has its result. A cancelled task still waits for it: see ``abandon(_:_:)``.
    ///
    /// - Parameter afterStart: called as soon as the operation is on its way to the actor. What it sends there comes next.
    @inlinable
    package nonisolated func carryOut(_ operation: Operation, afterStart: () -> Void = {}) async {
        await withTaskCancellationHandler {
            await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
                operation.continuation = continuation
                start(operation)
                afterStart()
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

    /// Begins an operation, unless the task is cancelled.
    @inlinable
    package nonisolated func start(_ operation: Operation) {
        if Task.isCancelled {
            operation.finish(.failure(Self.cancellation))
            return
        }
        enter { $0.admit(operation) }
        // A cancellation before the line above found no operation to cancel.
        if Task.isCancelled { cancel(operation.id) }
    }

    @inlinable
    package nonisolated func cancel(_ id: UInt64) {
        enter { $0.abandon(id, Self.cancellation) }
    }

    @inlinable
    package func admit(_ operation: Operation) {
        runner.operations[operation.id] = operation
        if reportsLongWaits, runner.longWaits == nil { watchLongWaits() }
        begin(operation)
    }

    /// Ends a call, if it has not ended before.
    @inlinable
    package func finish(_ id: UInt64, _ result: Result<Output, Failure>) {
        runner.operations.removeValue(forKey: id)?.finish(result)
    }

    /// Sets the timer for the state machine's next tick. Must be called after every event.
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

/// Makes the ids of calls, on any thread.
package final class OperationIDs: Sendable {
    private let last = Atomic<UInt64>(0)

    package init() {}

    package func next() -> UInt64 { last.wrappingAdd(1, ordering: .relaxed).newValue }
}
