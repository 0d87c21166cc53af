// The client's side of listening as a pure state machine: no I/O, no clock, no continuations.
//
// A poll is registered here first; then the subscription stands or is known not to; then the mailbox is read, and the
// same script that finds it empty notes who waits; then the poll waits. So there is no moment in which a message can come
// unnoticed: before the read, the read finds it; after it, the script that sends it finds the note. A hint that comes while
// a read is under way makes it read again, unless the answer has what the hint tells of.
//
// A hint says from where to where the mailbox has grown, and brings what is small. A poll that waits at just this place has
// its messages with it: to the tag of the last message it is where a read would have begun. Anything else is read.
//
// Hints are never needed: what waits is looked at again after every gap, and now and then, in batches.
import DequeModule
import HeapModule
import CoordinationBase

struct ListenStateMachine {
    typealias ID = UInt64

    struct Settings: Sendable {
        var usesWakeUps = true
        var pollInterval: Duration = .seconds(1)
        var recheckInterval: Duration = .seconds(30)
        var subscriptionLinger: Duration = .seconds(10)
        /// Pause before what has failed is tried again.
        var retryPause: Duration = .milliseconds(50)
        var longestRetryPause: Duration = .seconds(2)
        /// So many mailboxes are looked at by one command.
        var batch = 256
        /// So many are read at once: what many callers want at once is not written at once.
        var maxReads = 512
        /// For so long after its time is up a poll waits for the answer to its last look.
        var settleTime: Duration = .seconds(1)
    }

    struct Read: Sendable {
        var id: ID
        var wish: Poll.Wish
        /// The first time, or that failed: from now on this poll is the device's, unless it was before and is not now.
        var begins: Bool
        /// Whether the process wants to be woken when there is nothing.
        var waits: Bool
    }

    struct Check: Sendable {
        var id: ID
        var mailbox: String
        var device: String
        var cursor: Cursor
    }

    enum Action: Sendable {
        case subscribe(Int)
        case unsubscribe
        case read(Read)
        case check([Check])
        case finish(ID, Result<Delivery, QueueListenError>)
    }

    enum Failure: Error, Sendable {
        case passing(QueueListenError)
        case fatal(QueueListenError)
    }

    /// Apart from the polls, of which there are many, and few fail.
    private struct Trouble {
        var error: QueueListenError
        var pause: Duration
    }

    private enum Subscription {
        case off, starting, on, deaf
    }

    private struct Deadline: Comparable {
        var at: Duration
        var id: ID
        static func < (left: Self, right: Self) -> Bool { (left.at, left.id) < (right.at, right.id) }
    }

    private let settings: Settings
    private var polls: [ID: Poll] = [:]
    private var failures: [ID: Trouble] = [:]
    /// The newest poll of each mailbox; the others are its siblings.
    private var newest: [ByteName: Poll] = [:]
    /// Reads that are under way, and polls whose turn to read will come.
    private var readCount = 0
    private var queue = Deque<ID>()
    private var subscription = Subscription.off
    /// Tells the present subscription's events from those of a former one.
    private var generation = 0
    private var lingersUntil: Duration?
    private var deadlines = Heap<Deadline>()
    private var recheckAt: Duration?
    /// What is left to be looked at, and what is being looked at.
    private var unchecked: [ID] = []
    private var checking: [ID] = []
    private var checksAgain = false
    /// Until all who waited then have been looked at: a newer poll may have begun elsewhere.
    private var hasMissed = false
    private var checkPauseUntil: Duration?
    private var isStopped = false

    init(settings: Settings) { self.settings = settings }

    var isEmpty: Bool { polls.isEmpty && newest.isEmpty && failures.isEmpty }
    /// Polls that have read that there is nothing.
    var waitingCount: Int { polls.count { $0.value.isWaiting } }

    // MARK: Callers

    mutating func listen(_ poll: Poll, now: Duration) -> [Action] {
        if isStopped { return [.finish(poll.id, .failure(Self.stopped))] }
        let wish = poll.wish
        var actions: [Action] = []
        for older in polls(of: wish.mailbox) where ByteName(older.wish.device) == ByteName(wish.device) {
            // Numbers say who is the newer one, to the server too: tasks on other threads may come in another order.
            if older.id > poll.id {
                return [.finish(poll.id, .success(Delivery(.superseded, cursor: wish.cursor ?? .none)))]
            }
            let place = older.wish.cursor ?? wish.cursor ?? Cursor.none
            actions += finish(older.id, .success(Delivery(.superseded, cursor: place)), now)
        }
        polls[poll.id] = poll
        poll.sibling = newest.updateValue(poll, forKey: ByteName(wish.mailbox))
        if let deadline = wish.deadline { add(Deadline(at: deadline, id: poll.id)) }
        lingersUntil = nil
        if wish.isTry || !settings.usesWakeUps {
            actions += read(poll)
        } else {
            switch subscription {
            case .off:
                subscription = .starting
                generation += 1
                actions.append(.subscribe(generation))
            case .starting: break
            case .on, .deaf: actions += read(poll)
            }
        }
        if recheckAt == nil { recheckAt = now + interval }
        return actions
    }

    private func polls(of mailbox: String) -> [Poll] {
        Array(
            sequence(state: newest[ByteName(mailbox)]) { next in
                defer { next = next?.sibling }
                return next
            })
    }

    /// The caller does not wait any more.
    mutating func abandon(_ id: ID, _ error: QueueListenError, now: Duration) -> [Action] {
        polls[id] == nil ? [] : finish(id, .failure(error), now)
    }

    mutating func stop() -> [Action] {
        isStopped = true
        let ids = polls.keys.sorted()
        for poll in polls.values { poll.sibling = nil }
        polls = [:]
        failures = [:]
        newest = [:]
        queue = []
        return ids.map { .finish($0, .failure(Self.stopped)) } + [.unsubscribe]
    }

    private static var stopped: QueueListenError { QueueListenError(.stopped, "the post office has stopped") }

    private mutating func finish(_ id: ID, _ result: Result<Delivery, QueueListenError>, _ now: Duration) -> [Action] {
        guard let poll = polls.removeValue(forKey: id) else { return [] }
        failures[id] = nil
        if let newer = polls(of: poll.wish.mailbox).first(where: { $0.sibling === poll }) {
            newer.sibling = poll.sibling
        } else {
            newest[ByteName(poll.wish.mailbox)] = poll.sibling
        }
        poll.sibling = nil
        if polls.isEmpty {
            lingersUntil = now + settings.subscriptionLinger
            recheckAt = nil
        }
        return [.finish(id, result)]
    }

    private mutating func add(_ deadline: Deadline) {
        // Those of polls that ended before would gather otherwise.
        if deadlines.count > 2 * polls.count + 1024 {
            deadlines = Heap(deadlines.unordered.filter { polls[$0.id] != nil })
        }
        deadlines.insert(deadline)
    }

    // MARK: The subscription

    mutating func listening(_ generation: Int, hears: Bool, now: Duration) -> [Action] {
        guard generation == self.generation, subscription != .off else { return [] }
        let wasDeaf = subscription == .deaf
        subscription = hears ? .on : .deaf
        var actions: [Action] = []
        for poll in polls(where: { if case .subscribing = $0.state { true } else { false } }) { actions += read(poll) }
        if wasDeaf, hears { actions += missed() }
        if !polls.isEmpty { recheckAt = now + interval }
        return actions
    }

    mutating func gap(_ generation: Int, now: Duration) -> [Action] {
        guard generation == self.generation, subscription != .off else { return [] }
        return missed()
    }

    mutating func hint(_ generation: Int, _ hints: [MailHint], now: Duration) -> [Action] {
        guard generation == self.generation else { return [] }
        return hints.flatMap { hint in polls(of: hint.mailbox).flatMap { hear(hint, $0, now) } }
    }

    private mutating func hear(_ hint: MailHint, _ poll: Poll, _ now: Duration) -> [Action] {
        switch poll.state {
        case .waiting: return goOn(poll, hasMissed ? .look : .hint(hint), isFresh: true, now)
        case .reading(.look): return []
        case .reading:
            // Of several the last one counts: it was sent last.
            poll.state = .reading(hint.growth == nil ? .look : .hint(hint))
            return []
        default: return []
        }
    }

    /// With what a poll that has found nothing has heard.
    ///
    /// - Parameter isFresh: it has just come.
    private mutating func goOn(
        _ poll: Poll, _ news: Poll.News, isFresh: Bool, _ now: Duration
    ) -> [Action] {
        switch news {
        case .none: break
        case .look: return read(poll)
        case .hint(let hint):
            guard let growth = hint.growth else { return read(poll) }
            if poll.wish.cursor == growth.end { break }
            guard let reply = growth.reply(to: poll.wish, isFresh: isFresh) else { return read(poll) }
            return finish(poll.id, .success(reply.delivery), now)
        }
        if poll.wish.isTry || poll.isOver(at: now) {
            return finish(poll.id, .success(Delivery(.timedOut, cursor: poll.wish.cursor ?? .none)), now)
        }
        poll.state = .waiting
        return []
    }

    private mutating func wake(_ poll: Poll) -> [Action] {
        switch poll.state {
        case .waiting: return read(poll)
        case .reading:
            poll.state = .reading(.look)
            return []
        default: return []
        }
    }

    /// Hints may have been missed.
    private mutating func missed() -> [Action] {
        for poll in polls.values { if case .reading = poll.state { poll.state = .reading(.look) } }
        hasMissed = true
        return sweep()
    }

    private func polls(where condition: (Poll) -> Bool) -> [Poll] {
        polls.values.filter(condition).sorted { $0.id < $1.id }
    }

    // MARK: Reading

    private mutating func read(_ poll: Poll) -> [Action] {
        guard readCount < settings.maxReads else {
            poll.state = .queued
            queue.append(poll.id)
            return []
        }
        readCount += 1
        poll.state = .reading(.none)
        return [
            .read(
                Read(
                    id: poll.id, wish: poll.wish, begins: !poll.hasBegun,
                    waits: settings.usesWakeUps && !poll.wish.isTry))
        ]
    }

    /// Each read has one, whatever has become of its poll.
    mutating func reply(_ id: ID, _ result: Result<ReadReply, Failure>, now: Duration) -> [Action] {
        readCount -= 1
        var actions = take(id, result, now)
        while readCount < settings.maxReads, let next = queue.popFirst() {
            if let poll = polls[next], case .queued = poll.state { actions += read(poll) }
        }
        return actions
    }

    private mutating func take(_ id: ID, _ result: Result<ReadReply, Failure>, _ now: Duration) -> [Action] {
        guard let poll = polls[id], case .reading(let news) = poll.state else { return [] }
        switch result {
        case .success(let reply):
            guard reply.isEmpty else { return finish(id, .success(reply.delivery), now) }
            poll.hasBegun = true
            poll.wish.cursor = reply.position
            failures[id] = nil
            return goOn(poll, news, isFresh: false, now)
        case .failure(.fatal(let error)):
            return finish(id, .failure(error), now)
        case .failure(.passing(let error)):
            if poll.isOver(at: now) { return finish(id, .failure(error), now) }
            let pause = failures[id].map { min($0.pause * 2, settings.longestRetryPause) } ?? settings.retryPause
            failures[id] = Trouble(error: error, pause: pause)
            poll.state = .pausing(until: now + pause)
            add(Deadline(at: now + pause, id: id))
            return []
        }
    }

    // MARK: Looking at many at once

    private var interval: Duration { subscription == .on ? settings.recheckInterval : settings.pollInterval }

    /// Looks at everything that waits, once, however many reasons there are to do so.
    private mutating func sweep() -> [Action] {
        guard checking.isEmpty, unchecked.isEmpty else {
            checksAgain = true
            return []
        }
        unchecked = polls { $0.isWaiting }.map(\.id)
        return nextBatch()
    }

    private mutating func nextBatch() -> [Action] {
        while !unchecked.isEmpty {
            checking = Array(unchecked.suffix(settings.batch))
            unchecked.removeLast(checking.count)
            let checks = checking.compactMap { id -> Check? in
                guard let poll = polls[id], poll.isWaiting, let cursor = poll.wish.cursor else { return nil }
                return Check(id: id, mailbox: poll.wish.mailbox, device: poll.wish.device, cursor: cursor)
            }
            if !checks.isEmpty { return [.check(checks)] }
        }
        checking = []
        guard checksAgain else {
            hasMissed = false
            return []
        }
        checksAgain = false
        return sweep()
    }

    /// - Parameter result: those that are to be read again.
    mutating func checked(_ result: Result<[ID], Failure>, now: Duration) -> [Action] {
        switch result {
        case .success(let changed):
            checking = []
            return wake(changed) + nextBatch()
        case .failure(.passing):
            unchecked += checking
            checkPauseUntil = now + settings.retryPause
            return []
        case .failure(.fatal):
            // Each of them finds out by itself.
            let ids = checking
            checking = []
            return wake(ids) + nextBatch()
        }
    }

    private mutating func wake(_ ids: [ID]) -> [Action] {
        ids.compactMap { polls[$0] }.flatMap { wake($0) }
    }

    // MARK: Time

    var nextTick: Duration? {
        var next = deadlines.min?.at
        for at in [recheckAt, lingersUntil, checkPauseUntil] {
            if let at { next = min(next ?? at, at) }
        }
        return next
    }

    mutating func tick(now: Duration) -> [Action] {
        var actions: [Action] = []
        while let first = deadlines.min, first.at <= now {
            deadlines.removeMin()
            actions += due(first.id, now)
        }
        if let at = checkPauseUntil, at <= now {
            checkPauseUntil = nil
            checking = []
            actions += nextBatch()
        }
        if let at = recheckAt, at <= now {
            recheckAt = now + interval
            actions += sweep()
        }
        if let at = lingersUntil, at <= now {
            lingersUntil = nil
            if polls.isEmpty, subscription != .off {
                subscription = .off
                actions.append(.unsubscribe)
            }
        }
        return actions
    }

    private mutating func due(_ id: ID, _ now: Duration) -> [Action] {
        guard let poll = polls[id] else { return [] }
        let isOver = poll.isOver(at: now)
        if isOver, let end = poll.wish.deadline.map({ $0 + settings.settleTime }) {
            if end <= now { return finish(id, .failure(failures[id]?.error ?? Self.unanswered), now) }
            // Longer than this nobody waits for an answer to a last look.
            add(Deadline(at: end, id: id))
        }
        switch poll.state {
        // A last look: with no hints at all this is what finds a message in time.
        case .waiting, .subscribing: return isOver ? read(poll) : []
        case .pausing(let until):
            if isOver, let trouble = failures[id] { return finish(id, .failure(trouble.error), now) }
            return until <= now ? read(poll) : []
        case .reading, .queued: return []
        }
    }

    private static var unanswered: QueueListenError {
        QueueListenError(.connectionLost, "Redis has not answered when the time was up", mayHaveRun: true)
    }
}
