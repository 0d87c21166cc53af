// A call of `listen` in progress.
import CoordinationBase

/// A call of `listen`: its request, its state and its result, in one object.
///
/// The state machine owns `progress` from the moment in which it receives the call.
typealias PendingListen = PendingOperation<ListenProgress, Delivery, QueueListenError>

/// The request of a call of `listen`, and its progress.
struct ListenProgress: Sendable {
    enum State: Sendable {
        /// Waits until the subscription is confirmed or known to be unavailable.
        case subscribing
        /// Waits until fewer reads are in flight.
        case queued
        /// A read is in flight.
        case reading(Update)
        /// The last read failed, and is repeated at this time. `ListenStateMachine.failures` has its error.
        case pausing(until: Duration)
        /// The last read found nothing.
        case waiting
    }

    /// The change of the mailbox while a read was in flight.
    enum Update: Sendable {
        case none
        /// Something changed: an empty reply may be out of date.
        case unknownChange
        /// The last wake-up that arrived.
        case wakeUp(MailWakeUp)
    }

    /// Its cursor is replaced by the position that the first reply returns.
    var request: ListenRequest
    var state = State.subscribing
    /// Whether a read has been answered: the server knows this call's poll as the device's current one.
    var hasBegun = false
    /// The next older call for the same mailbox.
    var sibling: PendingListen?

    init(_ request: ListenRequest) {
        self.request = request
        hasBegun = request.reader?.hasBegun ?? false
    }
}

extension PendingOperation where Progress == ListenProgress {
    var request: ListenRequest {
        get { progress.request }
        set { progress.request = newValue }
    }
    var state: ListenProgress.State {
        get { progress.state }
        set { progress.state = newValue }
    }
    var hasBegun: Bool {
        get { progress.hasBegun }
        set { progress.hasBegun = newValue }
    }
    var sibling: PendingListen? {
        get { progress.sibling }
        set { progress.sibling = newValue }
    }

    /// The number of the call's poll, by which the server knows which call for a device is newer.
    var poll: UInt64 { request.reader?.poll ?? id }

    var isWaiting: Bool { if case .waiting = state { true } else { false } }

    func isOver(at now: Duration) -> Bool { request.deadline.map { $0 <= now } ?? false }
}

extension PendingOperation where Progress == ListenProgress, Output == Delivery, Failure == QueueListenError {
    /// Returns the result of a call that has ended.
    ///
    /// Not inlined, to keep the frames of waiting callers small.
    @inline(never)
    func delivery() throws(QueueListenError) -> Delivery {
        guard let result else { throw QueueListenError(.serverError, "the call has not ended") }
        do { return try result.get() } catch {
            throw error.prefixed("cannot listen to \"\(request.mailbox)\"")
        }
    }
}
