// One call of `listen`, on its way, and what became of it.

/// Holds what otherwise every function between the caller and the machine would keep in its frame, for as long as it waits
/// (docs/decisions.md).
///
/// `@unchecked`: only the task that made it writes and reads `answer`; the rest does not change.
final class PollErrand: @unchecked Sendable {
    /// What the waiting functions pass on is one reference.
    final class Answer: Sendable {
        let result: Result<Delivery, QueueListenError>

        init(_ result: Result<Delivery, QueueListenError>) { self.result = result }
    }

    let id: UInt64
    let wish: ListenMachine.Wish
    var answer: Answer?

    init(_ id: UInt64, _ wish: ListenMachine.Wish) { (self.id, self.wish) = (id, wish) }

    /// When it has been carried out.
    @inline(never)
    func delivery() throws(QueueListenError) -> Delivery { try answer!.result.get() }
}
