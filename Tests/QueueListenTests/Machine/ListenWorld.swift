// A Redis with its connections, as far as listeners see it, whose every step is taken when the test says so.
@testable import QueueListen

/// Runs a machine against a model of mailboxes: commands are carried out, answers and hints arrive, connections break, each
/// in its own time.
struct ListenWorld {
    /// What this world does that no Redis does: the machine cannot be right then, and the test has to see it.
    enum Treachery: CaseIterable {
        case losesHintsDuringReads, hidesGaps, confirmsTooEarly, forgetsWhoWaits
        case bringsWhatWasNotSent, hidesTakeOvers, forgetsWhoBegan
    }

    struct Box {
        var epoch: UInt64
        var tags: [UInt64] = []
        /// Whether the process is to be woken.
        var isWatched = false
        var owner: [String: Owner] = [:]

        var last: Int { tags.count }
        var end: Cursor { place(last) }
        func place(_ index: Int) -> Cursor {
            Cursor(epoch: epoch, index: index, tag: index == 0 ? 0 : tags[index - 1])
        }
        /// As it lies in the list.
        func element(_ index: Int) -> [UInt8] {
            func number(_ value: Int) -> [UInt8] { (0..<6).map { UInt8(value >> (8 * $0) & 0xFF) } }
            return [UInt8(ascii: "M")] + number(index) + tags[index - 1].mark + number(1) + number(0) + number(0) + [0]
        }
    }

    /// Whose a device is: a poll of this process, or 0, somebody else's.
    struct Owner {
        var id: UInt64
        /// The last poll of this process that was the device's.
        var ours: UInt64
    }

    private enum Command {
        case read(ListenStateMachine.Read)
        case check([ListenStateMachine.Check])
    }

    private enum Answer {
        case read(UInt64, Result<ReadReply, ListenStateMachine.Failure>)
        case checked(Result<[UInt64], ListenStateMachine.Failure>)
    }

    private enum News {
        case listening, gap
        case hint(MailHint)
    }

    var treachery: Treachery?
    private(set) var machine: ListenStateMachine
    private(set) var boxes: [String: Box] = [:]
    private(set) var wishes: [UInt64: Poll.Wish] = [:]
    private(set) var finished: [UInt64: Result<Delivery, QueueListenError>] = [:]
    private(set) var faults: [String] = []
    private(set) var commandCount = 0
    private(set) var now = Duration.zero
    private var commands: [Command] = []
    private var answers: [Answer] = []
    private var news: [News] = []
    private var generation = 0
    /// Whether the server knows of the subscription, and what it does not know yet.
    private var isSubscribed = false
    private var wantsSubscription = false
    private var wantsGap = false
    private var lastID: UInt64 = 0
    private var lastEpoch: UInt64 = 0
    private var lastTag: UInt64 = 0
    /// The tag before each, in the order in which they were sent.
    private var predecessors: [UInt64: UInt64] = [:]
    /// When the server first heard of each poll, each message was sent, and each device was taken over last.
    private var began: [UInt64: Duration] = [:]
    private var sent: [UInt64: Duration] = [:]
    private var taken: [String: Duration] = [:]
    /// Where each device has got to.
    private var places: [String: Cursor] = [:]

    init(settings: ListenStateMachine.Settings = .init(), treachery: Treachery? = nil) {
        machine = ListenStateMachine(settings: settings)
        self.treachery = treachery
    }

    // MARK: What the process does

    mutating func listen(_ mailbox: String, device: String = "d", timeout: Duration? = nil, isTry: Bool = false) {
        lastID += 1
        let wish = Poll.Wish(
            mailbox: mailbox, device: device, cursor: places["\(mailbox) \(device)"], most: 10, maxBytes: 1000,
            deadline: timeout.map { now + $0 }, isTry: isTry)
        wishes[lastID] = wish
        perform(machine.listen(Poll(lastID, wish), now: now))
    }

    mutating func cancel(_ id: UInt64) {
        perform(machine.abandon(id, QueueListenError(.cancelled, ""), now: now))
    }

    mutating func advance(_ duration: Duration) {
        now += duration
        perform(machine.tick(now: now))
    }

    var unfinished: [UInt64] { wishes.keys.filter { finished[$0] == nil }.sorted() }

    private mutating func perform(_ actions: [ListenStateMachine.Action]) {
        for action in actions {
            switch action {
            case .subscribe(let generation):
                self.generation = generation
                (isSubscribed, wantsSubscription, wantsGap, news) = (false, true, false, [])
                if treachery == .confirmsTooEarly { news.append(.listening) }
            case .unsubscribe: (isSubscribed, wantsSubscription, news) = (false, false, [])
            case .read(let read):
                commands.append(.read(read))
                commandCount += 1
            case .check(let checks):
                commands.append(.check(checks))
                commandCount += 1
            case .finish(let id, let result):
                if finished[id] != nil { faults.append("\(id) has finished twice") }
                finished[id] = result
                note(id, result)
            }
        }
    }

    private mutating func note(_ id: UInt64, _ result: Result<Delivery, QueueListenError>) {
        guard let wish = wishes[id], case .success(let delivery) = result else { return }
        if case .superseded = delivery.status { return }
        if case .messages(let messages) = delivery.status {
            var place = wish.cursor ?? Cursor(epoch: delivery.cursor.epoch, index: 0, tag: 0)
            for message in messages {
                let next = message.cursor
                if next.epoch != place.epoch || next.index != place.index + 1 || predecessors[next.tag] != place.tag {
                    faults.append("\(id) has got \(next) behind \(place)")
                }
                if let began = began[id], let taken = taken["\(wish.mailbox) \(wish.device)"],
                    let sent = sent[next.tag], began < taken, taken < sent
                {
                    faults.append("\(id) has got \(next) although somebody else had taken over")
                }
                place = next
            }
            if delivery.cursor != place || messages.isEmpty { faults.append("\(id) is sent on to \(delivery.cursor)") }
        }
        places["\(wish.mailbox) \(wish.device)"] = delivery.cursor
    }

    // MARK: What Redis does

    /// - Parameter brings: whether the hint has the message with it.
    mutating func send(to mailbox: String, brings: Bool = true) {
        var box = boxes[mailbox] ?? made(mailbox)
        now += .microseconds(1)
        let start = box.end
        box.tags.append(tag())
        sent[box.end.tag] = now
        predecessors[box.end.tag] = start.tag
        boxes[mailbox] = box
        guard box.isWatched else { return }
        if treachery == .bringsWhatWasNotSent { box.tags[start.index] = tag() }
        publish(mailbox, MailHint.Growth(start: start, end: box.end, elements: brings ? [box.element(box.last)] : []))
    }

    /// Another server takes over that has not got the last messages, and gets another one.
    mutating func failOver(_ mailbox: String, losing count: Int) {
        guard var box = boxes[mailbox], box.last > 0 else { return }
        box.tags.removeLast(min(count, box.last))
        box.isWatched = false
        boxes[mailbox] = box
        breakSubscription()
        send(to: mailbox)
    }

    /// A poll of another process begins, and reads on elsewhere.
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

    /// Everything is gone, and nobody is told.
    mutating func lose(_ mailbox: String) { boxes[mailbox] = nil }

    private mutating func made(_ mailbox: String) -> Box {
        lastEpoch += 1
        let box = Box(epoch: lastEpoch)
        publish(mailbox, MailHint.Growth(start: box.end, end: box.end, elements: []))
        return box
    }

    private mutating func publish(_ mailbox: String, _ growth: MailHint.Growth?) {
        if isSubscribed { news.append(.hint(MailHint(mailbox: mailbox, growth: growth))) }
    }

    mutating func carryOutNext() -> Bool {
        guard !commands.isEmpty else { return false }
        switch commands.removeFirst() {
        case .read(let read): answers.append(.read(read.id, .success(carryOut(read))))
        case .check(let checks): answers.append(.checked(.success(carryOut(checks))))
        }
        return true
    }

    /// The next command does not get through, or its answer does not.
    mutating func failNext(afterRunning: Bool) {
        guard !commands.isEmpty else { return }
        let failure = ListenStateMachine.Failure.passing(QueueListenError(.connectionLost, "", mayHaveRun: true))
        switch commands.removeFirst() {
        case .read(let read):
            if afterRunning { _ = carryOut(read) }
            answers.append(.read(read.id, .failure(failure)))
        case .check(let checks):
            if afterRunning { _ = carryOut(checks) }
            answers.append(.checked(.failure(failure)))
        }
    }

    private mutating func carryOut(_ read: ListenStateMachine.Read) -> ReadReply {
        now += .microseconds(1)
        began[read.id] = began[read.id] ?? now
        var box = boxes[read.wish.mailbox] ?? made(read.wish.mailbox)
        defer { boxes[read.wish.mailbox] = box }
        if let owner = box.owner[read.wish.device], owner.id != read.id {
            let hasBegun = treachery != .forgetsWhoBegan && owner.ours >= read.id
            if !read.begins || hasBegun { return ReadReply(.superseded, position: box.end) }
        }
        if read.begins { box.owner[read.wish.device] = Owner(id: read.id, ours: read.id) }
        let position = read.wish.cursor ?? box.place(0)
        guard position.epoch == box.epoch else { return ReadReply(.reset, position: box.place(0)) }
        guard position.index <= box.last, box.place(position.index) == position else {
            return ReadReply(.forked, position: box.place(0))
        }
        if position == box.end, read.waits, treachery != .forgetsWhoWaits { box.isWatched = true }
        var reply = ReadReply(.ok, position: position)
        for index in 0..<box.last where index >= position.index {
            if let stored = StoredMessage(box.element(index + 1)) { reply.add(stored, now: 1) }
        }
        return reply
    }

    private mutating func carryOut(_ checks: [ListenStateMachine.Check]) -> [UInt64] {
        checks.filter { check in
            guard let box = boxes[check.mailbox] else { return true }
            let isSame = box.end == check.cursor && box.owner[check.device]?.id == check.id
            if isSame { boxes[check.mailbox]?.isWatched = true }
            return !isSame
        }.map(\.id)
    }

    // MARK: What the network does

    mutating func answerNext() -> Bool {
        guard !answers.isEmpty else { return false }
        switch answers.removeFirst() {
        case .read(let id, let result): perform(machine.reply(id, result, now: now))
        case .checked(let result): perform(machine.checked(result, now: now))
        }
        return true
    }

    mutating func tellNext() -> Bool {
        guard !news.isEmpty else { return false }
        switch news.removeFirst() {
        case .listening: perform(machine.listening(generation, hears: true, now: now))
        case .gap: perform(machine.gap(generation, now: now))
        case .hint(let hint):
            if treachery == .losesHintsDuringReads, !commands.isEmpty || !answers.isEmpty { return true }
            perform(machine.hint(generation, [hint], now: now))
        }
        return true
    }

    /// The server learns of the subscription, and says so.
    mutating func subscribe() -> Bool {
        if wantsSubscription {
            (wantsSubscription, isSubscribed) = (false, true)
            if treachery != .confirmsTooEarly { news.append(.listening) }
            return true
        }
        if wantsGap {
            (wantsGap, isSubscribed) = (false, true)
            if treachery != .hidesGaps { news.append(.gap) }
            return true
        }
        return false
    }

    /// Nobody waits for a subscription.
    var isLeftAlone: Bool { !wantsSubscription && !wantsGap }

    /// The subscription cannot be had now.
    mutating func deafen() {
        if wantsSubscription { perform(machine.listening(generation, hears: false, now: now)) }
    }

    /// The subscription connection breaks, with all that is on its way.
    mutating func breakSubscription() {
        guard isSubscribed else { return }
        let confirms = news.contains { if case .listening = $0 { true } else { false } }
        (isSubscribed, news) = (false, confirms ? [.listening] : [])
        wantsGap = true
    }

    // MARK: The end

    /// Lets everything that is under way arrive, and as much time pass as retries take, but no slow look.
    mutating func settle() {
        for _ in 0..<200 {
            while subscribe() || carryOutNext() || answerNext() || tellNext() {}
            advance(.milliseconds(100))
        }
    }

    /// Polls that wait although there is something for them, or although they are not their device's any more.
    var oversleepers: [UInt64] {
        unfinished.filter { id in
            guard let wish = wishes[id], let box = boxes[wish.mailbox] else { return false }
            if let owner = box.owner[wish.device], owner.id != id { return true }
            return (places["\(wish.mailbox) \(wish.device)"] ?? box.place(0)) != box.end
        }
    }
}
