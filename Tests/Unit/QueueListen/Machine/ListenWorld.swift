// A model of Redis and its connections, as far as listeners see them. The test decides when each step happens.
import CoordinationBase
import TestSupport

@testable import QueueListen

/// Runs a state machine against a model of mailboxes: commands are executed, replies and wake-ups
/// arrive and connections break, each independently of the others.
struct ListenWorld {
    /// A fault of the world that Redis does not have. The machine cannot be correct then, and the
    /// test must detect it.
    enum Treachery: CaseIterable {
        case losesWakeUpsDuringReads, hidesGaps, confirmsTooEarly, forgetsRegistrations
        case announcesWhatWasNotSent, hidesTakeOvers, forgetsCalls
    }

    struct Box {
        var epoch: UInt64
        var tags: [UInt64] = []
        /// Whether the process is registered to be notified.
        var isWatched = false
        var owner: [String: Owner] = [:]

        var last: Int { tags.count }
        var end: Cursor { cursor(last) }
        func cursor(_ index: Int) -> Cursor {
            Cursor(epoch: epoch, index: index, tag: index == 0 ? 0 : tags[index - 1])
        }
        func cursorIfAny(_ index: Int) -> Cursor? { index <= last ? cursor(index) : nil }
        /// A message as the two elements of the list.
        func elements(_ index: Int) -> [[UInt8]] {
            func number(_ value: Int) -> [UInt8] { (0..<6).map { UInt8(value >> (8 * $0) & 0xFF) } }
            let head = [UInt8(ascii: "M")] + number(index) + number(0) + number(1) + tags[index - 1].bigEndianBytes
            return [head, number(0) + [0]]
        }
    }

    /// The current call of a device: one of this process, or 0 for another process's.
    struct Owner {
        var id: UInt64
        /// The last call of this process that was the device's current one.
        var ours: UInt64
    }

    private enum Command {
        case read(ListenStateMachine.Read)
        case check([ListenStateMachine.Check])
    }

    private enum Reply {
        case read(UInt64, Result<ReadReply, ListenStateMachine.Failure>)
        case checked(Result<[UInt64], ListenStateMachine.Failure>)
    }

    /// An event on the subscription's connection.
    private enum Notice {
        case subscribed, gap
        case wakeUp(MailWakeUp)
    }

    var treachery: Treachery?
    private(set) var machine: ListenStateMachine
    private(set) var boxes: [String: Box] = [:]
    private(set) var requests: [UInt64: ListenRequest] = [:]
    private(set) var finished: [UInt64: Result<Delivery, QueueListenError>] = [:]
    private(set) var faults: [String] = []
    private(set) var commandCount = 0
    private(set) var now = Duration.zero
    private var commands: [Command] = []
    private var replies: [Reply] = []
    private var notices: [Notice] = []
    private var generation = 0
    /// The subscription as the server knows it, and the changes that it will receive next.
    private var isSubscribed = false
    private var wantsSubscription = false
    private var wantsGap = false
    private var lastID: UInt64 = 0
    private var lastEpoch: UInt64 = 0
    private var lastTag: UInt64 = 0
    /// For each tag the one that was sent before it.
    private var predecessors: [UInt64: UInt64] = [:]
    /// The times at which the server first learned of each call, each message was sent, and each
    /// device was last taken over.
    private var began: [UInt64: Duration] = [:]
    private var sent: [UInt64: Duration] = [:]
    private var taken: [String: Duration] = [:]
    /// The position of each device.
    private var cursors: [String: Cursor] = [:]

    init(settings: ListenStateMachine.Settings = .init(), treachery: Treachery? = nil) {
        machine = ListenStateMachine(settings: settings)
        self.treachery = treachery
    }

    // MARK: The process

    mutating func listen(_ mailbox: String, device: String = "d", timeout: Duration? = nil, readsOnce: Bool = false) {
        lastID += 1
        let request = ListenRequest(
            mailbox: mailbox, device: device, cursor: cursors["\(mailbox) \(device)"], maxMessages: 10, maxBytes: 1000,
            deadline: timeout.map { now + $0 }, readsOnce: readsOnce)
        requests[lastID] = request
        perform(machine.listen(PendingListen(id: lastID, ListenProgress(request)), now: now))
    }

    mutating func cancel(_ id: UInt64) {
        let action = machine.cancel(id, QueueListenError(.cancelled, ""), now: now)
        if case .finish(let id, let error) = action { finish(id, .failure(error)) }
    }

    mutating func advance(_ duration: Duration) {
        now += duration
        perform(machine.tick(now: now))
    }

    var unfinished: [UInt64] { requests.keys.filter { finished[$0] == nil }.sorted() }

    // MARK: Actions of the machine

    private mutating func perform(_ actions: [ListenStateMachine.ListenAction]) {
        for action in actions {
            switch action {
            case .subscribe(let generation): startSubscription(generation)
            case .read(let read): send(.read(read))
            case .finish(let id, let outcome): finish(id, outcome)
            }
        }
    }

    private mutating func perform(_ action: ListenStateMachine.GapAction) {
        if case .check(let checks) = action { send(.check(checks)) }
    }

    private mutating func perform(_ actions: [ListenStateMachine.ReadAction]) {
        for action in actions {
            switch action {
            case .read(let read): send(.read(read))
            case .finish(let id, let outcome): finish(id, outcome)
            }
        }
    }

    private mutating func perform(_ actions: [ListenStateMachine.CheckAction]) {
        for action in actions {
            switch action {
            case .read(let read): send(.read(read))
            case .check(let checks): send(.check(checks))
            }
        }
    }

    private mutating func perform(_ actions: [ListenStateMachine.TickAction]) {
        for action in actions {
            switch action {
            case .read(let read): send(.read(read))
            case .check(let checks): send(.check(checks))
            case .finish(let id, let outcome): finish(id, outcome)
            case .unsubscribe: (isSubscribed, wantsSubscription, notices) = (false, false, [])
            }
        }
    }

    private mutating func startSubscription(_ generation: Int) {
        self.generation = generation
        (isSubscribed, wantsSubscription, wantsGap, notices) = (false, true, false, [])
        if treachery == .confirmsTooEarly { notices.append(.subscribed) }
    }

    private mutating func send(_ command: Command) {
        commands.append(command)
        commandCount += 1
    }

    private mutating func finish(_ id: UInt64, _ outcome: ListenStateMachine.Finish) {
        if finished[id] != nil { faults.append("call \(id) was finished twice") }
        finished[id] = outcome
        check(id, outcome)
    }

    /// Checks that a delivery continues where the call began, and moves the device's position.
    private mutating func check(_ id: UInt64, _ outcome: ListenStateMachine.Finish) {
        guard let request = requests[id], case .success(let delivery) = outcome else { return }
        if case .superseded = delivery.status { return }
        if case .messages(let messages) = delivery.status {
            var position = request.cursor ?? Cursor(epoch: delivery.cursor.epoch, index: 0, tag: 0)
            if boxes[request.mailbox]?.cursorIfAny(position.index) != position {
                // Redis has lost the position. The call goes on after a message that the device has received before.
                let received = sequence(first: position.tag) { [predecessors] tag in predecessors[tag] }
                let next = messages.first?.cursor
                let before = next.flatMap { predecessors[$0.tag] } ?? delivery.cursor.tag
                if received.contains(before), next != nil || delivery.skipped > 0 {
                    let index = next.map { $0.index - 1 } ?? delivery.cursor.index
                    position = Cursor(epoch: position.epoch, index: index, tag: before)
                }
            }
            for message in messages {
                let next = message.cursor
                if next.epoch != position.epoch || next.index != position.index + 1
                    || predecessors[next.tag] != position.tag
                {
                    faults.append("call \(id) received \(next) after \(position)")
                }
                if let began = began[id], let taken = taken["\(request.mailbox) \(request.device)"],
                    let sent = sent[next.tag], began < taken, taken < sent
                {
                    faults.append("call \(id) received \(next) after another call had taken the device over")
                }
                position = next
            }
            if delivery.cursor != position || messages.isEmpty && delivery.skipped == 0 {
                faults.append("call \(id) is continued at \(delivery.cursor)")
            }
        }
        cursors["\(request.mailbox) \(request.device)"] = delivery.cursor
    }

    // MARK: Redis

    /// Sends a message.
    ///
    /// - Parameter wakeUpContains: whether the wake-up contains the message.
    mutating func send(to mailbox: String, wakeUpContains: Bool = true) {
        var box = boxes[mailbox] ?? create(mailbox)
        now += .microseconds(1)
        let start = box.end
        box.tags.append(tag())
        sent[box.end.tag] = now
        predecessors[box.end.tag] = start.tag
        boxes[mailbox] = box
        guard box.isWatched else { return }
        if treachery == .announcesWhatWasNotSent { box.tags[start.index] = tag() }
        publish(
            mailbox,
            MailWakeUp.Growth(start: start, end: box.end, elements: wakeUpContains ? box.elements(box.last) : []))
    }

    /// Fails over to a server that lacks the last messages, and sends another message to it.
    mutating func failOver(_ mailbox: String, losing count: Int) {
        guard var box = boxes[mailbox], box.last > 0 else { return }
        box.tags.removeLast(min(count, box.last))
        box.isWatched = false
        boxes[mailbox] = box
        breakSubscription()
        send(to: mailbox)
    }

    /// Begins a call of another process for the device.
    mutating func takeOver(_ mailbox: String, _ device: String) {
        guard var box = boxes[mailbox], let owner = box.owner[device] else { return }
        now += .microseconds(1)
        box.owner[device] = Owner(id: 0, ours: owner.ours)
        boxes[mailbox] = box
        taken["\(mailbox) \(device)"] = now
        if owner.id != 0, treachery != .hidesTakeOvers { publish(mailbox, nil) }
    }

    private mutating func tag() -> UInt64 {
        lastTag += 1
        return lastTag
    }

    /// Loses a mailbox without notifying anyone.
    mutating func lose(_ mailbox: String) { boxes[mailbox] = nil }

    private mutating func create(_ mailbox: String) -> Box {
        lastEpoch += 1
        let box = Box(epoch: lastEpoch)
        publish(mailbox, MailWakeUp.Growth(start: box.end, end: box.end, elements: []))
        return box
    }

    private mutating func publish(_ mailbox: String, _ growth: MailWakeUp.Growth?) {
        if isSubscribed { notices.append(.wakeUp(MailWakeUp(mailbox: mailbox, growth: growth))) }
    }

    /// Executes the next command.
    mutating func executeNext() -> Bool {
        guard !commands.isEmpty else { return false }
        switch commands.removeFirst() {
        case .read(let read): replies.append(.read(read.id, .success(execute(read))))
        case .check(let checks): replies.append(.checked(.success(execute(checks))))
        }
        return true
    }

    /// Loses the next command, or its reply.
    mutating func failNext(afterRunning: Bool) {
        guard !commands.isEmpty else { return }
        let failure = ListenStateMachine.Failure.transient(QueueListenError(.connectionLost, "", mayHaveRun: true))
        switch commands.removeFirst() {
        case .read(let read):
            if afterRunning { _ = execute(read) }
            replies.append(.read(read.id, .failure(failure)))
        case .check(let checks):
            if afterRunning { _ = execute(checks) }
            replies.append(.checked(.failure(failure)))
        }
    }

    private mutating func execute(_ read: ListenStateMachine.Read) -> ReadReply {
        now += .microseconds(1)
        began[read.id] = began[read.id] ?? now
        var box = boxes[read.request.mailbox] ?? create(read.request.mailbox)
        defer { boxes[read.request.mailbox] = box }
        if let owner = box.owner[read.request.device], owner.id != read.id {
            let hasBegun = treachery != .forgetsCalls && owner.ours >= read.id
            if !read.begins || hasBegun { return ReadReply(.superseded, position: box.end) }
        }
        if read.begins { box.owner[read.request.device] = Owner(id: read.id, ours: read.id) }
        let position = read.request.cursor ?? box.cursor(0)
        guard position.epoch == box.epoch else { return ReadReply(.reset, position: box.cursor(0)) }
        guard position.index <= box.last, box.cursor(position.index) == position else {
            return ReadReply(.forked, position: box.cursor(0))
        }
        if position == box.end, read.waits, treachery != .forgetsRegistrations { box.isWatched = true }
        var reply = ReadReply(.ok, position: position)
        for index in 0..<box.last where index >= position.index {
            let elements = box.elements(index + 1)
            if let stored = StoredMessage(head: elements[0], body: elements[1]) { reply.add(stored, now: 1) }
        }
        return reply
    }

    private mutating func execute(_ checks: [ListenStateMachine.Check]) -> [UInt64] {
        checks.filter { check in
            guard let box = boxes[check.mailbox] else { return true }
            let isSame = box.end == check.cursor && box.owner[check.device]?.id == check.id
            if isSame { boxes[check.mailbox]?.isWatched = true }
            return !isSame
        }.map(\.id)
    }

    // MARK: The network

    /// Delivers the next reply.
    mutating func replyNext() -> Bool {
        guard !replies.isEmpty else { return false }
        switch replies.removeFirst() {
        case .read(let id, let result): perform(machine.replyArrived(id, result, now: now))
        case .checked(let result): perform(machine.checkReplied(result, now: now))
        }
        return true
    }

    /// Delivers the next notice.
    mutating func notifyNext() -> Bool {
        guard !notices.isEmpty else { return false }
        switch notices.removeFirst() {
        case .subscribed: perform(machine.subscriptionChanged(generation, isSubscribed: true, now: now))
        case .gap: perform(machine.gap(generation))
        case .wakeUp(let wakeUp):
            if treachery == .losesWakeUpsDuringReads, !commands.isEmpty || !replies.isEmpty { return true }
            perform(machine.wakeUpsArrived(generation, [wakeUp], now: now))
        }
        return true
    }

    /// Lets the server learn of the subscription and confirm it.
    mutating func subscribe() -> Bool {
        if wantsSubscription {
            (wantsSubscription, isSubscribed) = (false, true)
            if treachery != .confirmsTooEarly { notices.append(.subscribed) }
            return true
        }
        if wantsGap {
            (wantsGap, isSubscribed) = (false, true)
            if treachery != .hidesGaps { notices.append(.gap) }
            return true
        }
        return false
    }

    /// Whether the server knows everything about the subscription.
    var subscriptionIsSettled: Bool { !wantsSubscription && !wantsGap }

    /// Refuses the subscription for the present.
    mutating func refuseSubscription() {
        if wantsSubscription { perform(machine.subscriptionChanged(generation, isSubscribed: false, now: now)) }
    }

    /// Breaks the subscription's connection and loses the notices in flight.
    mutating func breakSubscription() {
        guard isSubscribed else { return }
        let confirms = notices.contains { if case .subscribed = $0 { true } else { false } }
        (isSubscribed, notices) = (false, confirms ? [.subscribed] : [])
        wantsGap = true
    }

    // MARK: The end

    /// Delivers everything in flight, and lets as much time pass as retries need, but not as much
    /// as periodic checks.
    mutating func settle() {
        for _ in 0..<200 {
            while subscribe() || executeNext() || replyNext() || notifyNext() {}
            advance(.milliseconds(100))
        }
    }

    /// The calls that wait although there is a message for them, or although they are not their
    /// device's current call.
    var stuckCalls: [UInt64] {
        unfinished.filter { id in
            guard let request = requests[id], let box = boxes[request.mailbox] else { return false }
            if let owner = box.owner[request.device], owner.id != id { return true }
            return (cursors["\(request.mailbox) \(request.device)"] ?? box.cursor(0)) != box.end
        }
    }
}
