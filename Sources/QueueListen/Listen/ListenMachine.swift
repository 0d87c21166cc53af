// The client's side of listening as a pure state machine: no I/O, no clock, no continuations.
//
// A poll is registered here first; then the subscription stands or is known not to; then the mailbox is read, and the
// same script that finds it empty notes who waits; then the poll waits. So there is no moment in which a message can come
// unnoticed: before the read, the read finds it; after it, the script that sends it finds the note. A hint that comes while
// a read is under way makes it read again.
//
// Hints are never needed: what waits is looked at again after every gap, and now and then, in batches.
import HeapModule

struct ListenMachine {
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
    }

    /// What a caller wants.
    struct Wish: Sendable {
        var mailbox: String
        var device: String
        var cursor: Cursor?
        var most: Int
        var mostBytes: Int
        /// `nil`: as long as it takes.
        var deadline: Duration?
        /// Answers at once.
        var isTry = false
    }

    struct Read: Sendable {
        var id: ID
        var wish: Wish
        /// The first time: from now on this poll is the device's.
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

    private enum State {
        case subscribing
        /// `isDirty`: something has happened since, so that an empty answer is worth nothing.
        case reading(isDirty: Bool)
        /// Something has failed: `failures` has it.
        case pausing(until: Duration)
        case waiting
    }

    private struct Poll {
        var wish: Wish
        var state = State.subscribing
        var hasBegun = false
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
    private var idsOf: [String: [ID]] = [:]
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
    private var checkPauseUntil: Duration?
    private var isStopped = false

    init(settings: Settings) { self.settings = settings }

    var isEmpty: Bool { polls.isEmpty && idsOf.isEmpty && failures.isEmpty }
    /// Polls that have read that there is nothing.
    var waitingCount: Int { polls.count { if case .waiting = $0.value.state { true } else { false } } }

    // MARK: Callers

    mutating func listen(_ id: ID, _ wish: Wish, now: Duration) -> [Action] {
        if isStopped { return [.finish(id, .failure(Self.stopped))] }
        var actions: [Action] = []
        for other in idsOf[wish.mailbox] ?? [] {
            guard let older = polls[other]?.wish, older.device == wish.device else { continue }
            let place = older.cursor ?? wish.cursor ?? Cursor.none
            actions += finish(other, .success(Delivery(.superseded, cursor: place)), now)
        }
        polls[id] = Poll(wish: wish)
        idsOf[wish.mailbox, default: []].append(id)
        if let deadline = wish.deadline { add(Deadline(at: deadline, id: id)) }
        lingersUntil = nil
        if wish.isTry || !settings.usesWakeUps {
            actions += read(id)
        } else {
            switch subscription {
            case .off:
                subscription = .starting
                generation += 1
                actions.append(.subscribe(generation))
            case .starting: break
            case .on, .deaf: actions += read(id)
            }
        }
        if recheckAt == nil { recheckAt = now + interval }
        return actions
    }

    /// The caller does not wait any more.
    mutating func abandon(_ id: ID, _ error: QueueListenError, now: Duration) -> [Action] {
        polls[id] == nil ? [] : finish(id, .failure(error), now)
    }

    mutating func stop() -> [Action] {
        isStopped = true
        let ids = polls.keys.sorted()
        polls = [:]
        failures = [:]
        idsOf = [:]
        return ids.map { .finish($0, .failure(Self.stopped)) } + [.unsubscribe]
    }

    private static var stopped: QueueListenError { QueueListenError(.stopped, "the post office has stopped") }

    private mutating func finish(_ id: ID, _ result: Result<Delivery, QueueListenError>, _ now: Duration) -> [Action] {
        guard let poll = polls.removeValue(forKey: id) else { return [] }
        failures[id] = nil
        let name = poll.wish.mailbox
        if let ids = idsOf[name], ids.count > 1 {
            idsOf[name] = ids.filter { $0 != id }
        } else {
            idsOf[name] = nil
        }
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
        for id in ids(where: { if case .subscribing = $0 { true } else { false } }) { actions += read(id) }
        if wasDeaf, hears { actions += missed() }
        if !polls.isEmpty { recheckAt = now + interval }
        return actions
    }

    mutating func gap(_ generation: Int, now: Duration) -> [Action] {
        guard generation == self.generation, subscription != .off else { return [] }
        return missed()
    }

    mutating func hint(_ generation: Int, _ names: [String]) -> [Action] {
        guard generation == self.generation else { return [] }
        return names.flatMap { name in (idsOf[name] ?? []).flatMap { wake($0) } }
    }

    private mutating func wake(_ id: ID) -> [Action] {
        switch polls[id]?.state {
        case .waiting: return read(id)
        case .reading:
            polls[id]?.state = .reading(isDirty: true)
            return []
        default: return []
        }
    }

    /// Hints may have been missed.
    private mutating func missed() -> [Action] {
        for id in ids(where: { if case .reading = $0 { true } else { false } }) {
            polls[id]?.state = .reading(isDirty: true)
        }
        return sweep()
    }

    private func ids(where condition: (State) -> Bool) -> [ID] {
        polls.filter { condition($0.value.state) }.map(\.key).sorted()
    }

    // MARK: Reading

    private mutating func read(_ id: ID) -> [Action] {
        guard var poll = polls[id] else { return [] }
        poll.state = .reading(isDirty: false)
        polls[id] = poll
        return [
            .read(
                Read(
                    id: id, wish: poll.wish, begins: !poll.hasBegun,
                    waits: settings.usesWakeUps && !poll.wish.isTry))
        ]
    }

    mutating func reply(_ id: ID, _ result: Result<ReadReply, Failure>, now: Duration) -> [Action] {
        guard let poll = polls[id], case .reading(let isDirty) = poll.state else { return [] }
        switch result {
        case .success(let reply):
            guard reply.isEmpty else { return finish(id, .success(reply.delivery), now) }
            polls[id]?.hasBegun = true
            polls[id]?.wish.cursor = reply.position
            failures[id] = nil
            if isDirty { return read(id) }
            if poll.wish.isTry || poll.wish.deadline.map({ $0 <= now }) ?? false {
                return finish(id, .success(reply.delivery), now)
            }
            polls[id]?.state = .waiting
            return []
        case .failure(.fatal(let error)):
            return finish(id, .failure(error), now)
        case .failure(.passing(let error)):
            if poll.wish.deadline.map({ $0 <= now }) ?? false { return finish(id, .failure(error), now) }
            let pause = failures[id].map { min($0.pause * 2, settings.longestRetryPause) } ?? settings.retryPause
            failures[id] = Trouble(error: error, pause: pause)
            polls[id]?.state = .pausing(until: now + pause)
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
        unchecked = ids { if case .waiting = $0 { true } else { false } }
        return nextBatch()
    }

    private mutating func nextBatch() -> [Action] {
        while !unchecked.isEmpty {
            checking = Array(unchecked.suffix(settings.batch))
            unchecked.removeLast(checking.count)
            let checks = checking.compactMap { id -> Check? in
                guard let poll = polls[id], case .waiting = poll.state, let cursor = poll.wish.cursor else {
                    return nil
                }
                return Check(id: id, mailbox: poll.wish.mailbox, device: poll.wish.device, cursor: cursor)
            }
            if !checks.isEmpty { return [.check(checks)] }
        }
        checking = []
        guard checksAgain else { return [] }
        checksAgain = false
        return sweep()
    }

    /// - Parameter result: those that are to be read again.
    mutating func checked(_ result: Result<[ID], Failure>, now: Duration) -> [Action] {
        switch result {
        case .success(let changed):
            checking = []
            return changed.flatMap { wake($0) } + nextBatch()
        case .failure(.passing):
            unchecked += checking
            checkPauseUntil = now + settings.retryPause
            return []
        case .failure(.fatal):
            // Each of them finds out by itself.
            let ids = checking
            checking = []
            return ids.flatMap { wake($0) } + nextBatch()
        }
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
        let isOver = poll.wish.deadline.map { $0 <= now } ?? false
        switch poll.state {
        // A last look: with no hints at all this is what finds a message in time.
        case .waiting, .subscribing: return isOver ? read(id) : []
        case .pausing(let until):
            if isOver, let trouble = failures[id] { return finish(id, .failure(trouble.error), now) }
            return until <= now ? read(id) : []
        case .reading: return []
        }
    }
}
