// Deadlines of calls, intervals of checks, and the end of the subscription.
import CoordinationBase
import HeapModule

extension ListenStateMachine {
    /// The time at which `tick` must be called next; `nil` when there is none.
    var nextTick: Duration? {
        var next = deadlines.min?.at
        func consider(_ at: Duration?) { if let at { next = min(next ?? at, at) } }
        consider(recheckAt)
        consider(subscription?.lingersUntil)
        if case .pausing(let until, _) = sweep { consider(until) }
        return next
    }

    mutating func add(_ deadline: Deadline) {
        // Deadlines of ended calls stay until their time; they are removed when they outnumber the others.
        if deadlines.count > 2 * calls.count + 1024 {
            deadlines = Heap(deadlines.unordered.filter { calls[$0.id] != nil })
        }
        deadlines.insert(deadline)
    }

    // MARK: Time passes

    enum TickAction: Sendable {
        case read(Read)
        case check([Check])
        case finish(ID, Finish)
        case unsubscribe
    }

    mutating func tick(now: Duration) -> [TickAction] {
        var actions: [TickAction] = []
        while let first = deadlines.min, first.at <= now {
            deadlines.removeMin()
            if let action = deadlineReached(first.id, now) { actions.append(action) }
        }
        if case .pausing(let until, let remainder) = sweep, until <= now, let checks = nextBatch(remainder) {
            actions.append(.check(checks))
        }
        if let at = recheckAt, at <= now {
            recheckAt = now + checkInterval
            if let checks = startSweep(afterGap: false) { actions.append(.check(checks)) }
        }
        if let at = subscription?.lingersUntil, at <= now {
            subscription = nil
            actions.append(.unsubscribe)
        }
        return actions
    }

    private mutating func deadlineReached(_ id: ID, _ now: Duration) -> TickAction? {
        guard let call = calls[id] else { return nil }
        let isOver = call.isOver(at: now)
        if isOver, let end = call.request.deadline.map({ $0 + settings.settleTime }) {
            if end <= now { return fail(call, failures[id]?.error ?? Self.unanswered, now) }
            // The call does not wait longer than this for the reply to its last read.
            add(Deadline(at: end, id: id))
        }
        switch call.state {
        // The last read: without any wake-ups, this finds a message in time.
        case .waiting, .subscribing: return isOver ? startRead(call).map { .read($0) } : nil
        case .pausing(let until):
            if isOver, let failure = failures[id] { return fail(call, failure.error, now) }
            return until <= now ? startRead(call).map { .read($0) } : nil
        case .reading, .queued: return nil
        }
    }

    private mutating func fail(_ call: PendingListen, _ error: QueueListenError, _ now: Duration) -> TickAction {
        remove(call, now)
        return .finish(call.id, .failure(error))
    }

    private static var unanswered: QueueListenError {
        QueueListenError(.connectionLost, "Redis did not answer before the timeout", mayHaveRun: true)
    }
}
