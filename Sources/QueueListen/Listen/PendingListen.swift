/// A call of `listen` in progress: its request, its state and its result.
///
/// It is one object, so that the frames of waiting tasks and the tables of the state machine hold
/// only a reference to each call (docs/decisions.md).
///
/// `@unchecked Sendable`: `answer` belongs to the calling task, and everything else to the state
/// machine, from the moment in which it receives the object.
final class PendingListen: @unchecked Sendable {
    enum State {
        /// Waits until the subscription is confirmed or known to be unavailable.
        case subscribing
        /// Waits until fewer reads are in flight.
        case queued
        /// A read is in flight.
        case reading(Update)
        /// The last read failed, and is repeated at this time. `ListenStateMachine.failures` has
        /// its error.
        case pausing(until: Duration)
        /// The last read found nothing.
        case waiting
    }

    /// What happened to the mailbox while a read was in flight.
    enum Update {
        case none
        /// Something changed: an empty reply may be out of date.
        case unknownChange
        /// The last hint that arrived.
        case hint(MailHint)
    }

    /// The result, as one reference, which is what the waiting functions pass on.
    final class Answer: Sendable {
        let result: Result<Delivery, QueueListenError>

        init(_ result: Result<Delivery, QueueListenError>) { self.result = result }
    }

    /// Grows with each call of the process. Of two calls for one device, the one with the greater
    /// id is the newer one.
    let id: UInt64
    /// Its cursor is replaced by the position that the first reply returns.
    var request: ListenRequest
    var state = State.subscribing
    /// Whether a read has been answered: the server knows this call as the device's current one.
    var hasBegun = false
    /// The next older call for the same mailbox.
    var sibling: PendingListen?
    var answer: Answer?

    init(_ id: UInt64, _ request: ListenRequest) { (self.id, self.request) = (id, request) }

    var isWaiting: Bool { if case .waiting = state { true } else { false } }

    func isOver(at now: Duration) -> Bool { request.deadline.map { $0 <= now } ?? false }

    /// Returns the result. Call it when `answer` is set.
    ///
    /// Not inlined, to keep the frames of waiting callers small.
    @inline(never)
    func delivery() throws(QueueListenError) -> Delivery {
        do { return try answer!.result.get() } catch {
            throw error.prefixed("cannot listen to \"\(request.mailbox)\"")
        }
    }
}
