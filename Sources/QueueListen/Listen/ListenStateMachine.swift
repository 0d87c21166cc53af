import CoordinationBase
// The client's side of listening as a pure state machine: no I/O, no clock, no continuations.
//
// A call is registered here first. Then the process subscribes to its channel, or learns that it cannot. Then the mailbox
// is read, and the script that finds it empty also registers the process to be notified. Then the call waits. A message can
// therefore not go unnoticed: the read finds a message that was sent before it, and the script that sends a message after
// it finds the registration. A wake-up that arrives while a read is in flight causes another read, unless the reply
// already contains what the wake-up reports.
//
// A wake-up says from which position to which the mailbox has grown, and contains small messages. A call that waits at
// exactly the first position receives the messages from the wake-up, because a read would have started at the same
// message, identified by its tag. All other calls read.
//
// Wake-ups are never required: after every gap, and periodically, all waiting calls are checked in batches.
//
// Here: the state, and the callers' events. The other events are in +Subscription (the channel and its wake-ups), +Reads
// (replies), +Sweep (checks in batches) and +Time (deadlines and intervals).
import DequeModule
import HeapModule

/// The calls of `listen` of one process to the mailboxes of one partition.
struct ListenStateMachine {
    typealias ID = UInt64
    typealias Finish = Result<Delivery, QueueListenError>

    struct Settings: Sendable {
        var usesWakeUps = true
        /// The interval of checks while there is no subscription.
        var pollInterval: Duration = .seconds(1)
        /// The interval of checks while there is a subscription.
        var recheckInterval: Duration = .seconds(30)
        /// The time for which the subscription is kept after the last call has ended.
        var subscriptionLinger: Duration = .seconds(10)
        /// The pause before a failed command is repeated, which doubles up to `maxRetryPause`.
        var retryPause: Duration = .milliseconds(50)
        var maxRetryPause: Duration = .seconds(2)
        /// The number of calls that one command checks.
        var batch = 128
        /// The maximum number of reads in flight, so that many simultaneous calls are not written
        /// at once.
        var maxReads = 512
        /// The time for which a call waits for the reply to its last read after its deadline.
        var settleTime: Duration = .seconds(1)
    }

    /// A read of a mailbox for one call.
    struct Read: Sendable {
        var id: ID
        var poll: UInt64
        var request: ListenRequest
        /// Whether this call may become the device's current one: true until a read of it has been
        /// answered. The server refuses if the call was the current one before and is no longer.
        var begins: Bool
        /// Whether the process is registered to be notified if the mailbox is empty.
        var waits: Bool
    }

    /// A check whether anything has changed for a waiting call.
    struct Check: Sendable {
        var id: ID
        var poll: UInt64
        var mailbox: String
        var device: String
        var cursor: Cursor
    }

    /// The failure of a read or a check.
    enum Failure: Error, Sendable {
        /// The same command may succeed later.
        case transient(QueueListenError)
        case permanent(QueueListenError)
    }

    // MARK: State

    /// The subscription to the process's channel; its absence is `nil`.
    struct Subscription {
        enum Status {
            /// Requested, and not confirmed yet.
            case starting
            case active
            /// Not possible at present. It is retried until the subscription is ended.
            case unavailable
        }

        /// Distinguishes the events of this subscription from those of an earlier one.
        let generation: Int
        var status = Status.starting
        /// The time at which the subscription ends. Set while there are no calls.
        var lingersUntil: Duration?
    }

    /// The progress of a check of all waiting calls, in batches of one command each.
    enum Sweep {
        case idle
        /// A batch is being checked.
        case checking([ID], SweepRemainder)
        /// A batch has failed. The sweep continues at this time.
        case pausing(until: Duration, SweepRemainder)
    }

    /// The rest of a sweep, after the batch in flight.
    struct SweepRemainder {
        var unchecked: [ID]
        /// Whether another sweep follows, because there was a reason for one during this one.
        var repeats = false
        /// Whether wake-ups may have been missed before the sweep. Until it has ended, a wake-up says
        /// nothing about what happened before it: a newer call for the device may have begun
        /// elsewhere.
        var followsGap: Bool
    }

    /// The last failure of a call and the pause after it. Kept apart from the calls, of which there
    /// are many, and few fail.
    struct ReadFailure {
        var error: QueueListenError
        var pause: Duration
    }

    /// A time at which a call needs attention.
    struct Deadline: Comparable {
        var at: Duration
        var id: ID
        static func < (left: Self, right: Self) -> Bool { (left.at, left.id) < (right.at, right.id) }
    }

    let settings: Settings
    var calls: [ID: PendingListen] = [:]
    var failures: [ID: ReadFailure] = [:]
    /// The newest call for each mailbox; the others are linked from it as siblings.
    var newest: [ByteName: PendingListen] = [:]
    /// The number of reads in flight, and the calls that wait for their turn to read.
    var readCount = 0
    var readQueue = Deque<ID>()
    var subscription: Subscription?
    var lastGeneration = 0
    var sweep = Sweep.idle
    var deadlines = Heap<Deadline>()
    var trails = ReadTrails()
    /// The time of the next check of all waiting calls; `nil` while there are none.
    var recheckAt: Duration?
    var isStopped = false

    init(settings: Settings) { self.settings = settings }

    var isEmpty: Bool { calls.isEmpty && newest.isEmpty && failures.isEmpty }
    /// The number of calls that have found their mailbox empty.
    var waitingCount: Int { calls.count { $0.value.isWaiting } }

    // MARK: Listen

    enum ListenAction: Sendable {
        case subscribe(generation: Int)
        case read(Read)
        case finish(ID, Finish)
    }

    /// Registers a call. It ends an older call of this process for the same device with
    /// `.superseded`.
    mutating func listen(_ call: PendingListen, now: Duration) -> [ListenAction] {
        if isStopped { return [.finish(call.id, .failure(Self.stopped))] }
        let request = call.request
        var actions: [ListenAction] = []
        for other in calls(for: request.mailbox) where ByteName(other.request.device) == ByteName(request.device) {
            // Polls decide which call is newer, as on the server: calls from several threads may arrive in any order.
            if other.poll > call.poll {
                return [.finish(call.id, .success(Delivery(.superseded, cursor: request.cursor ?? .none)))]
            }
            let cursor = other.request.cursor ?? request.cursor ?? Cursor.none
            remove(other, now)
            actions.append(.finish(other.id, .success(Delivery(.superseded, cursor: cursor))))
        }
        calls[call.id] = call
        call.sibling = newest.updateValue(call, forKey: ByteName(request.mailbox))
        if let deadline = request.deadline { add(Deadline(at: deadline, id: call.id)) }
        subscription?.lingersUntil = nil
        if !request.readsOnce, settings.usesWakeUps, subscription == nil {
            lastGeneration += 1
            subscription = Subscription(generation: lastGeneration)
            actions.append(.subscribe(generation: lastGeneration))
        }
        let needsSubscription = !request.readsOnce && settings.usesWakeUps
        if !needsSubscription || subscription?.status != .starting, let read = startRead(call) {
            actions.append(.read(read))
        }
        if recheckAt == nil { recheckAt = now + checkInterval }
        return actions
    }

    /// The calls for a mailbox, the newest first.
    func calls(for mailbox: String) -> [PendingListen] {
        Array(
            sequence(state: newest[ByteName(mailbox)]) { next in
                defer { next = next?.sibling }
                return next
            })
    }

    /// Forgets a call that is about to be finished.
    mutating func remove(_ call: PendingListen, _ now: Duration) {
        calls[call.id] = nil
        failures[call.id] = nil
        if let newer = calls(for: call.request.mailbox).first(where: { $0.sibling === call }) {
            newer.sibling = call.sibling
        } else {
            newest[ByteName(call.request.mailbox)] = call.sibling
        }
        call.sibling = nil
        if calls.isEmpty {
            subscription?.lingersUntil = now + settings.subscriptionLinger
            recheckAt = nil
        }
    }

    // MARK: Cancel

    enum CancelAction: Sendable {
        case none
        case finish(ID, QueueListenError)
    }

    /// Ends a call whose caller no longer waits.
    mutating func cancel(_ id: ID, _ error: QueueListenError, now: Duration) -> CancelAction {
        guard let call = calls[id] else { return .none }
        remove(call, now)
        return .finish(id, error)
    }

    // MARK: Stop

    enum StopAction: Sendable {
        case finish(ID, QueueListenError)
        case unsubscribe
    }

    /// Ends all calls and the subscription. Later calls fail immediately.
    mutating func stop() -> [StopAction] {
        let ids = calls.keys.sorted()
        let wasSubscribed = subscription != nil
        for call in calls.values { call.sibling = nil }
        let readCount = readCount
        self = ListenStateMachine(settings: settings)
        // The replies to reads in flight still arrive.
        self.readCount = readCount
        isStopped = true
        return ids.map { .finish($0, Self.stopped) } + (wasSubscribed ? [.unsubscribe] : [])
    }

    private static var stopped: QueueListenError { QueueListenError(.stopped, "the post office has stopped") }
}
