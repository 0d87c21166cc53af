import DequeModule
import NIOCore

/// The life of one connection whose commands are answered in order, without any I/O.
///
/// Commands occupy slots in a queue, and each reply belongs to the first one. A command that is
/// cancelled or timed out keeps its slot: its reply is still read and passed on, so that an element
/// that it popped, for example, can be put back. `ConnectionHandler` reports the events and carries
/// out the actions. `Context` is the caller's side of a command. The machine does not look into it,
/// so tests can use a string.
struct ConnectionStateMachine<Context>: ~Copyable {
    /// A command or pipeline that awaits its reply.
    struct Slot {
        var id: UInt64
        var context: Context
        /// One, or the number of commands in a pipeline.
        var expectedReplies: Int
        var deadline: NIODeadline
        /// The time of silence after which the connection is suspected to be dead while the command is in the queue.
        var silenceLimit: TimeAmount?
    }

    private struct Entry {
        var slot: Slot
        var collected: [RESPValue] = []
        var abandoned = false
        /// Whether its bytes were handed to the socket: the server may then have run it.
        var written = false
    }

    private enum State {
        case open
        /// Refuses new commands, and closes when the last reply has arrived.
        case draining
        case closed(RedisError)
    }

    private var state = State.open
    private var entries = Deque<Entry>()
    private var unwritten = 0
    /// The time since which the server has been silent: at that time the last bytes arrived, or the
    /// first command was added to the empty queue.
    private var headSince = NIODeadline.distantFuture
    /// The number of looks at a server that has been silent for the limit, and when the next one counts.
    private var looks = 0
    private var nextLook = NIODeadline.distantPast

    var isIdle: Bool { entries.isEmpty }
    var count: Int { entries.count }
    /// Whether enough commands are unwritten for a write before the turn ends. If all commands of a
    /// turn were written at its end, the server would be idle while tasks make commands, and the
    /// tasks would be idle while the server runs them (docs/decisions/0004).
    var hasShare: Bool { unwritten >= max(16, entries.count / 4) }

    // MARK: Enqueue

    enum EnqueueAction {
        case none
        case fail(Context, RedisError)
    }

    /// Adds a command to the queue.
    mutating func enqueue(_ slot: Slot, now: NIODeadline) -> EnqueueAction {
        switch state {
        case .open:
            if entries.isEmpty { headSince = now }
            entries.append(Entry(slot: slot))
            unwritten += 1
            return .none
        case .draining:
            return .fail(slot.context, RedisError(.clientStopped, "the connection is closing"))
        case .closed(let error):
            return .fail(slot.context, error.asNotRun)
        }
    }

    /// Notes that all commands enqueued so far have been handed to the socket.
    mutating func wroteAll() {
        guard unwritten > 0 else { return }
        for index in (entries.count - unwritten)..<entries.count { entries[index].written = true }
        unwritten = 0
    }

    // MARK: Reply

    /// Notes that bytes arrived: a reply, several, or part of one.
    mutating func heard(now: NIODeadline) { (headSince, looks) = (now, 0) }

    enum ReplyAction {
        /// The reply is part of a pipeline that is not complete.
        case none
        case deliver(Context, RESPValue)
        /// The caller was cancelled or timed out; the reply must be settled.
        case settle(Context, RESPValue)
        /// No command awaits a reply.
        case unexpected
    }

    /// Assigns a reply to the first command in the queue.
    mutating func received(_ reply: RESPValue) -> ReplyAction {
        guard !entries.isEmpty, entries[0].written else { return .unexpected }
        if entries[0].slot.expectedReplies > 1 {
            entries[0].collected.append(reply)
            guard entries[0].collected.count == entries[0].slot.expectedReplies else { return .none }
            let entry = entries.removeFirst()
            return finish(entry, .array(entry.collected))
        }
        return finish(entries.removeFirst(), reply)
    }

    private func finish(_ entry: Entry, _ reply: RESPValue) -> ReplyAction {
        entry.abandoned ? .settle(entry.slot.context, reply) : .deliver(entry.slot.context, reply)
    }

    // MARK: Cancel and deadlines

    /// A caller that must receive an error.
    struct Failure {
        var context: Context
        var error: RedisError
    }

    /// Abandons a command. Returns `nil` when its caller has already received the reply or an
    /// error.
    mutating func cancel(_ id: UInt64) -> Failure? {
        guard let index = index(of: id), !entries[index].abandoned else { return nil }
        return abandon(index, .cancelled, "the task was cancelled")
    }

    /// Returns the place of a command in the queue.
    ///
    /// Ids are given in increasing order, but threads may submit in a slightly different one. So a binary search comes
    /// close, and the command is near: many cancellations together take no more than linear time.
    private func index(of id: UInt64) -> Int? {
        var (low, high) = (0, entries.count)
        while low < high {
            let middle = (low + high) / 2
            if entries[middle].slot.id < id { low = middle + 1 } else { high = middle }
        }
        var (left, right) = (low - 1, low)
        while left >= 0 || right < entries.count {
            if right < entries.count, entries[right].slot.id == id { return right }
            if left >= 0, entries[left].slot.id == id { return left }
            (left, right) = (left - 1, right + 1)
        }
        return nil
    }

    /// Fails every command whose deadline has passed, at any position in the queue.
    mutating func expire(now: NIODeadline) -> [Failure] {
        var failures: [Failure] = []
        for index in entries.indices where !entries[index].abandoned && entries[index].slot.deadline <= now {
            failures.append(abandon(index, .timedOut, "no reply within the deadline"))
        }
        return failures
    }

    /// The earliest deadline of the callers that still wait.
    var nextDeadline: NIODeadline? {
        entries.lazy.filter { !$0.abandoned }.map(\.slot.deadline).min()
    }

    /// The time since which the server owes a reply and has been silent; `nil` when it owes none.
    var silentSince: NIODeadline? {
        guard let head = entries.first, head.written else { return nil }
        return headSince
    }

    enum Silence: Equatable {
        /// The server owes no reply, or nothing limits its silence.
        case allowed
        case lookAgain(at: NIODeadline)
        /// The server counts as dead: it has been silent for this limit, and for a quarter of it more.
        case dead(TimeAmount)
    }

    /// Looks at the silence of a server, for which the shortest limit counts: that of the connection or of a command in
    /// the queue. A command keeps its limit when it is abandoned: another one like it would be as silent.
    ///
    /// When the limit has passed, the reply may be in the socket: after a pause of this process the event loop may run
    /// overdue timers before it reads, and it reads only when no other task is due. So the connection ends with the
    /// fifth look, each at least a sixteenth of the limit after the one before. A pause, however long, makes only one
    /// look due.
    mutating func lookForSilence(_ connectionLimit: TimeAmount?, now: NIODeadline) -> Silence {
        let limits = entries.lazy.compactMap(\.slot.silenceLimit)
        guard let since = silentSince, let limit = [connectionLimit, limits.min()].compactMap({ $0 }).min() else {
            return .allowed
        }
        guard since + limit <= now else { return .lookAgain(at: since + limit) }
        // The timer may fire for another deadline.
        if looks == 0 || nextLook <= now {
            looks += 1
            guard looks < 5 else { return .dead(limit) }
            nextLook = now + .nanoseconds(limit.nanoseconds / 16)
        }
        return .lookAgain(at: nextLook)
    }

    private mutating func abandon(_ index: Int, _ code: RedisError.Code, _ message: String) -> Failure {
        entries[index].abandoned = true
        // Its bytes are in the outgoing buffer and will be sent, even if they have not been sent yet.
        return Failure(
            context: entries[index].slot.context, error: RedisError(code, message, mayHaveRun: true))
    }

    // MARK: Close

    enum DrainAction { case none, close }

    /// Refuses new commands. The connection ends when the last reply has arrived.
    mutating func drain() -> DrainAction {
        guard case .open = state else { return .none }
        state = .draining
        return entries.isEmpty ? .close : .none
    }

    var isDrained: Bool {
        if case .draining = state { entries.isEmpty } else { false }
    }

    /// Ends the connection. Returns the callers that wait, each with an error that says whether its
    /// command may have run.
    mutating func close(_ error: RedisError) -> [Failure] {
        if case .closed = state { return [] }
        state = .closed(error)
        let waiting = entries
        entries = []
        unwritten = 0
        return waiting.compactMap { entry in
            if entry.abandoned { return nil }
            var error = error
            error.mayHaveRun = entry.written
            // The server may give the reason before it closes a connection ("max number of clients reached").
            if let reason = entry.collected.last?.errorMessage { error.message += "; the server said: \(reason)" }
            return Failure(context: entry.slot.context, error: error)
        }
    }
}

extension RedisError {
    fileprivate var asNotRun: RedisError {
        var copy = self
        copy.mayHaveRun = false
        return copy
    }
}
