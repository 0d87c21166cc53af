// The life of one connection that answers commands in order, without any I/O.
//
// Commands are slots in a queue; replies go to the head. A command that is cancelled or out of time leaves its slot in
// place: the reply is still read, and handed to whoever settles what it brought (an element that was popped, say).
// CommandHandler feeds the events in and carries the actions out. `Context` is the caller's side of a command; the
// machine never looks into it, so tests use a string.
import DequeModule
import NIOCore

struct ConnectionStateMachine<Context>: ~Copyable {
    struct Slot {
        var id: UInt64
        var context: Context
        /// One, or the number of commands in a pipeline.
        var expectedReplies: Int
        var deadline: NIODeadline
    }

    private struct Entry {
        var slot: Slot
        var collected: [RESPValue] = []
        var abandoned = false
        /// Its bytes were handed to the socket: from here on the server may have run it.
        var written = false
    }

    private enum State {
        case open
        /// No new commands; close when the last reply is in.
        case draining
        case closed(RedisError)
    }

    private var state = State.open
    private var entries = Deque<Entry>()
    private var unwritten = 0
    /// When the current head became the head, or the last bytes came: how long the server has been silent towards it.
    private var headSince = NIODeadline.distantFuture

    var isIdle: Bool { entries.isEmpty }
    var count: Int { entries.count }
    /// Enough is unwritten for a write of its own. Were all of a turn written with its end, the server would have nothing to
    /// do while tasks make their commands, and they nothing while it does theirs (docs/decisions.md).
    var hasShare: Bool { unwritten >= max(16, entries.count / 4) }

    // MARK: Enqueue

    enum EnqueueAction {
        case none
        case fail(Context, RedisError)
    }

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

    /// All that was enqueued so far has been handed to the socket.
    mutating func wroteAll() {
        guard unwritten > 0 else { return }
        for index in (entries.count - unwritten)..<entries.count { entries[index].written = true }
        unwritten = 0
    }

    // MARK: Reply

    /// Bytes came: a reply, several, or a part of one.
    mutating func heard(now: NIODeadline) { headSince = now }

    enum ReplyAction {
        /// Part of a pipeline that is not complete.
        case none
        case deliver(Context, RESPValue)
        /// The caller has gone; what the reply brought must be settled.
        case settle(Context, RESPValue)
        /// Nobody asked.
        case unexpected
    }

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

    struct Failure {
        var context: Context
        var error: RedisError
    }

    /// The caller gives up. `nil` when the reply has been delivered already, or the caller was failed before.
    mutating func cancel(_ id: UInt64) -> Failure? {
        guard let index = entries.firstIndex(where: { $0.slot.id == id }), !entries[index].abandoned else { return nil }
        return abandon(index, .cancelled, "the task was cancelled")
    }

    /// Fails every command whose deadline has passed, wherever in the queue it stands.
    mutating func expire(now: NIODeadline) -> [Failure] {
        var failures: [Failure] = []
        for index in entries.indices where !entries[index].abandoned && entries[index].slot.deadline <= now {
            failures.append(abandon(index, .timedOut, "no reply within the deadline"))
        }
        return failures
    }

    /// The earliest deadline of a caller that still waits.
    var nextDeadline: NIODeadline? {
        entries.lazy.filter { !$0.abandoned }.map(\.slot.deadline).min()
    }

    /// Since when the server owes the head a reply; `nil` when it owes nothing.
    var silentSince: NIODeadline? {
        guard let head = entries.first, head.written else { return nil }
        return headSince
    }

    private mutating func abandon(_ index: Int, _ code: RedisError.Code, _ message: String) -> Failure {
        entries[index].abandoned = true
        // Its bytes are in the outgoing buffer already and will be sent, even when they are not yet.
        return Failure(
            context: entries[index].slot.context, error: RedisError(code, message, mayHaveRun: true))
    }

    // MARK: Close

    enum DrainAction { case none, close }

    /// No new commands; the connection ends when the last reply is in.
    mutating func drain() -> DrainAction {
        guard case .open = state else { return .none }
        state = .draining
        return entries.isEmpty ? .close : .none
    }

    var isDrained: Bool {
        if case .draining = state { entries.isEmpty } else { false }
    }

    /// The connection is gone: everyone who waits is told, each with whether the command may have run.
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
            // Before it closes a connection the server may say why ("max number of clients reached").
            if let reason = entry.collected.last?.errorMessage { error.message += ", saying: \(reason)" }
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
