// One call of `listen`, on its way, and what became of it.

/// What a caller of `listen` wants, how far that is, and the outcome: one object, so that neither the frames of those who
/// wait nor the tables that they are in have more of it than a reference (docs/decisions.md).
///
/// `@unchecked`: `answer` is its task's, everything else the machine's, from the moment in which it has got the poll.
final class Poll: @unchecked Sendable {
    /// What a caller wants.
    struct Wish: Sendable {
        var mailbox: String
        var device: String
        var cursor: Cursor?
        var most: Int
        var maxBytes: Int
        /// `nil`: as long as it takes.
        var deadline: Duration?
        /// Answers at once.
        var isTry = false
    }

    enum State {
        case subscribing
        /// Other reads are to be answered first.
        case queued
        /// With what was heard since it was asked.
        case reading(News)
        /// Something has failed: `ListenStateMachine.failures` has it.
        case pausing(until: Duration)
        case waiting
    }

    enum News {
        case none
        /// Something has happened: an empty answer is worth nothing.
        case look
        /// The last of what was sent meanwhile.
        case hint(MailHint)
    }

    /// What the waiting functions pass on is one reference.
    final class Answer: Sendable {
        let result: Result<Delivery, QueueListenError>

        init(_ result: Result<Delivery, QueueListenError>) { self.result = result }
    }

    let id: UInt64
    var wish: Wish
    var state = State.subscribing
    var hasBegun = false
    /// The next poll of the same mailbox.
    var sibling: Poll?
    var answer: Answer?

    init(_ id: UInt64, _ wish: Wish) { (self.id, self.wish) = (id, wish) }

    var isWaiting: Bool { if case .waiting = state { true } else { false } }

    func isOver(at now: Duration) -> Bool { wish.deadline.map { $0 <= now } ?? false }

    /// When it has been carried out.
    @inline(never)
    func delivery() throws(QueueListenError) -> Delivery { try answer!.result.get() }
}
