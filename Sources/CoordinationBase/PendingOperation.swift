// A call that waits for a state machine's result.
package import Synchronization

/// A call in progress: its request, its progress, and its result.
///
/// There is one object for each call, so that the frames of the functions that wait, and the collections that list
/// the call, contain only a reference (docs/decisions/0021).
///
/// `@unchecked`: `progress` is accessed only on the runner's executor once the call has begun. `ending` is
/// written there once, before the caller is resumed, and read by the caller afterwards.
package final class PendingOperation<Progress, Output, Failure: Error>: @unchecked Sendable {
    /// Unique among the calls of one runner. Later calls have larger ids.
    package let id: UInt64
    /// The request, and the data that the state machine stores with it.
    package var progress: Progress
    /// Set after `ending`, with release ordering, and read before it. The continuation orders the two threads as well,
    /// but in a way that ThreadSanitizer does not see (docs/decisions/0048).
    @usableFromInline let hasEnded: Atomic<Bool>
    /// `nil` until the call has ended. A reference, so that a call that waits needs no memory for a result.
    @usableFromInline var ending: Ending?
    /// The waiting caller. An unsafe continuation saves an allocation for each waiter; `finish` takes it and resumes it
    /// once.
    @usableFromInline package var continuation: UnsafeContinuation<Void, Never>?

    @inlinable
    package init(id: UInt64, _ progress: Progress) {
        (self.id, self.progress) = (id, progress)
        // Set here because an inlinable initialiser must set every property.
        hasEnded = Atomic(false)
        (ending, continuation) = (nil, nil)
    }

    /// `nil` until the call has ended.
    package var result: Result<Output, Failure>? { hasEnded.load(ordering: .acquiring) ? ending?.result : nil }

    /// Ends the call and resumes its caller. Only the first result counts.
    package func finish(_ result: Result<Output, Failure>) {
        guard let continuation else { return }
        self.continuation = nil
        ending = Ending(result)
        hasEnded.store(true, ordering: .releasing)
        continuation.resume()
    }

    /// The result of an ended call.
    @usableFromInline final class Ending {
        let result: Result<Output, Failure>

        init(_ result: Result<Output, Failure>) { self.result = result }
    }
}
