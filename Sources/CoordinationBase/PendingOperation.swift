// One call that waits for a state machine's answer.

/// A call in progress: what the caller asked for, how far it has got, and its result.
///
/// There is one object for each call, so that neither the frames of the functions that wait nor the tables that
/// list the call hold more than a reference (docs/decisions.md).
///
/// `@unchecked`: `progress` is accessed only on the runner's executor once the call has begun. `result` is
/// written there once, before the caller is resumed, and read by the caller afterwards.
package final class PendingOperation<Progress, Output, Failure: Error>: @unchecked Sendable {
    /// Unique among the calls of one runner. Later calls have larger ids.
    package let id: UInt64
    /// What was asked for, and whatever the state machine keeps with it.
    package var progress: Progress
    /// `nil` until the call has ended.
    package private(set) var result: Result<Output, Failure>?
    /// Unsafe saves an allocation for each waiter. It is resumed once, because `finish` takes it.
    @usableFromInline package var continuation: UnsafeContinuation<Void, Never>?

    @inlinable
    package init(id: UInt64, _ progress: Progress) {
        (self.id, self.progress) = (id, progress)
        // Set here because an inlinable initialiser must set every property.
        (result, continuation) = (nil, nil)
    }

    /// Ends the call and resumes its caller. Only the first result counts.
    package func finish(_ result: Result<Output, Failure>) {
        guard let continuation else { return }
        self.continuation = nil
        self.result = result
        continuation.resume()
    }
}
