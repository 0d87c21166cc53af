// Which topics are wanted by whom, what the server has been told, and what it has confirmed; without any I/O.
//
// The server answers SUBSCRIBE, UNSUBSCRIBE and PING in the order they were sent, one confirmation for each topic, so a
// topic is subscribed when the last command about it was SUBSCRIBE and no confirmation is outstanding. `Subscriber` is
// where messages go; the machine only compares ids.
import DequeModule

struct SubscriptionStateMachine<Subscriber: Identifiable> where Subscriber.ID == UInt64 {
    typealias JoinID = UInt64

    enum Command: Equatable {
        case subscribe(SubscriptionTopic.Kind, [String])
        case unsubscribe(SubscriptionTopic.Kind, [String])
        case ping
    }

    private struct Topic {
        var subscribers: [Subscriber] = []
        /// The last command about it was SUBSCRIBE.
        var isWanted = false
        var outstanding = 0
        var joins: [JoinID] = []
        /// Had it when the connection broke, and are owed a gap when it is back.
        var regaining: [UInt64] = []

        var isConfirmed: Bool { isWanted && outstanding == 0 }
    }

    private struct Member {
        var subscriber: Subscriber
        /// Each with the joins that brought it and are not complete yet: it goes with the last of them. Without any it is
        /// there to stay.
        var topics: [SubscriptionTopic: [JoinID]] = [:]
        /// Topics that it had and that are not back yet.
        var regaining = 0
        /// A gap must come before the next message.
        var owesGap = false
    }

    private struct Join {
        var subscriber: UInt64
        var wanted: [SubscriptionTopic]
        var missing = 0
    }

    private struct Sent {
        var command: Command
        var confirmed = 0
    }

    private var topics: [SubscriptionTopic: Topic] = [:]
    private var members: [UInt64: Member] = [:]
    private var joins: [JoinID: Join] = [:]
    private var inFlight = Deque<Sent>()
    private var isConnected = false
    private var owedGaps = 0
    /// Most topics in one command: each is confirmed on its own, and an ACL refuses a command as a whole.
    private let batch: Int

    init(batch: Int = 1000) { self.batch = batch }

    var isNeeded: Bool { !topics.isEmpty }
    var isEmpty: Bool { topics.isEmpty && members.isEmpty && joins.isEmpty }
    var allSubscribers: [Subscriber] { members.values.map(\.subscriber) }

    // MARK: Join and leave

    struct JoinAction {
        var commands: [Command] = []
        /// All topics stand already.
        var isComplete = false
    }

    /// The subscriber wants these topics too; `id` names the wait for their confirmation.
    mutating func join(_ subscriber: Subscriber, to wanted: [SubscriptionTopic], id: JoinID) -> JoinAction {
        var action = JoinAction()
        var fresh: [SubscriptionTopic] = []
        var join = Join(subscriber: subscriber.id, wanted: wanted)
        // Taken out, not copied: a subscriber may have many topics and add them one by one.
        var member = members.removeValue(forKey: subscriber.id) ?? Member(subscriber: subscriber)
        for name in wanted {
            var topic = topics[name] ?? Topic()
            if member.topics[name] == nil { topic.subscribers.append(subscriber) }
            if member.topics[name]?.isEmpty != true { member.topics[name, default: []].append(id) }
            if !topic.isConfirmed {
                join.missing += 1
                topic.joins.append(id)
            }
            if isConnected, !topic.isWanted {
                topic.isWanted = true
                topic.outstanding += 1
                fresh.append(name)
            }
            topics[name] = topic
        }
        members[subscriber.id] = member
        joins[id] = join
        if join.missing == 0 {
            complete(id)
            action.isComplete = true
        }
        action.commands = send(fresh, as: Command.subscribe)
        return action
    }

    /// The subscriber leaves these topics, or all of them and for good.
    mutating func leave(_ id: UInt64, topics wanted: [SubscriptionTopic]? = nil) -> [Command] {
        guard var member = members.removeValue(forKey: id) else { return [] }
        var unneeded: [SubscriptionTopic] = []
        for name in wanted ?? Array(member.topics.keys) {
            guard member.topics.removeValue(forKey: name) != nil, var topic = topics[name] else { continue }
            topic.subscribers.removeAll { $0.id == id }
            if topic.subscribers.isEmpty {
                if isConnected, topic.isWanted {
                    topic.isWanted = false
                    topic.outstanding += 1
                    unneeded.append(name)
                } else if topic.outstanding == 0 {
                    for other in topic.regaining where other != id { members[other]?.regaining -= 1 }
                    if topic.regaining.contains(id) { member.regaining -= 1 }
                    topics[name] = nil
                    continue
                }
            }
            topics[name] = topic
        }
        if wanted != nil { members[id] = member } else if member.owesGap { owedGaps -= 1 }
        return send(unneeded, as: Command.unsubscribe)
    }

    /// The waits for confirmation that would never end if the subscriber left these topics, or all.
    func joins(of id: UInt64, on wanted: [SubscriptionTopic]? = nil) -> [JoinID] {
        (wanted ?? members[id].map { Array($0.topics.keys) } ?? [])
            .flatMap { topics[$0]?.joins ?? [] }
            .filter { joins[$0]?.subscriber == id }
    }

    /// Whoever waited for the confirmation has given up: what the join had added is left again.
    mutating func cancelJoin(_ id: JoinID) -> [Command] {
        guard let join = joins.removeValue(forKey: id) else { return [] }
        var left: [SubscriptionTopic] = []
        for name in join.wanted {
            guard var reasons = members[join.subscriber]?.topics[name], reasons.contains(id) else { continue }
            reasons.removeAll { $0 == id }
            if reasons.isEmpty { left.append(name) } else { members[join.subscriber]!.topics[name] = reasons }
        }
        return leave(join.subscriber, topics: left)
    }

    private mutating func complete(_ id: JoinID) {
        guard let join = joins.removeValue(forKey: id) else { return }
        for name in join.wanted where members[join.subscriber]?.topics[name]?.contains(id) == true {
            members[join.subscriber]!.topics[name] = []
        }
    }

    // MARK: Connection

    /// A new connection stands: everything that is wanted is asked for again.
    mutating func connected() -> [Command] {
        isConnected = true
        for name in topics.keys {
            topics[name]!.isWanted = true
            topics[name]!.outstanding = 1
        }
        return send(Array(topics.keys), as: Command.subscribe)
    }

    /// The connection is gone: whoever listened may miss something until its topics are back.
    mutating func disconnected() {
        isConnected = false
        inFlight.removeAll()
        for id in members.keys { members[id]!.regaining = 0 }
        for name in Array(topics.keys) {
            var topic = topics[name]!
            if topic.isConfirmed { topic.regaining = topic.subscribers.map(\.id) }
            topic.isWanted = false
            topic.outstanding = 0
            topic.joins = []
            if topic.subscribers.isEmpty {
                topics[name] = nil
                continue
            }
            for id in topic.regaining { members[id]?.regaining += 1 }
            topics[name] = topic
        }
        for id in members.keys where members[id]!.regaining > 0 && !members[id]!.owesGap {
            members[id]!.owesGap = true
            owedGaps += 1
        }
        // Who waits for several topics waits again for those that were confirmed already.
        for (id, join) in joins {
            let awaited = join.wanted.filter { name in
                members[join.subscriber]?.topics[name].map { $0.isEmpty || $0.contains(id) } == true
            }
            for name in awaited { topics[name]!.joins.append(id) }
            joins[id]!.missing = awaited.count
        }
    }

    /// Asks for a sign of life.
    mutating func ping() -> [Command] {
        guard isConnected else { return [] }
        inFlight.append(Sent(command: .ping))
        return [.ping]
    }

    // MARK: What the server says

    enum Event: Equatable {
        case confirmed(subscribe: Bool, SubscriptionTopic)
        case pong
        case error(String)
    }

    struct Outcome {
        var completed: [JoinID] = []
        var failed: [(JoinID, RedisError)] = []
        /// To be told that messages may be missing.
        var gaps: [Subscriber] = []
        /// Lost a topic for good.
        var ended: [(Subscriber, RedisError)] = []
        var commands: [Command] = []
        /// What came fits nothing that was sent.
        var isUnexpected = false
    }

    mutating func received(_ event: Event) -> Outcome {
        guard var head = inFlight.first else { return Outcome(isUnexpected: true) }
        switch (event, head.command) {
        case (.pong, .ping):
            inFlight.removeFirst()
            return Outcome()
        case (.confirmed(true, let name), .subscribe(let kind, let names)),
            (.confirmed(false, let name), .unsubscribe(let kind, let names)):
            guard kind == name.kind, names[head.confirmed] == name.name else { return Outcome(isUnexpected: true) }
            head.confirmed += 1
            if head.confirmed == names.count { inFlight.removeFirst() } else { inFlight[0] = head }
            return confirm(name)
        case (.error(let message), .subscribe(let kind, let names)):
            inFlight.removeFirst()
            return refused(names[head.confirmed...].map { SubscriptionTopic(kind, $0) }, message)
        case (.error, .unsubscribe(let kind, let names)):
            inFlight.removeFirst()
            return names[head.confirmed...].reduce(into: Outcome()) { $0.add(confirm(SubscriptionTopic(kind, $1))) }
        case (.error, .ping):
            // A user that may not PING still proves that the connection lives.
            inFlight.removeFirst()
            return Outcome()
        default:
            return Outcome(isUnexpected: true)
        }
    }

    private mutating func confirm(_ name: SubscriptionTopic) -> Outcome {
        var outcome = Outcome()
        guard var topic = topics[name] else { return outcome }
        topic.outstanding -= 1
        guard topic.outstanding == 0 else {
            topics[name] = topic
            return outcome
        }
        outcome.gaps = regained(&topic)
        guard topic.isWanted else {
            topics[name] = nil
            return outcome
        }
        for id in topic.joins {
            guard joins[id] != nil else { continue }
            joins[id]!.missing -= 1
            if joins[id]!.missing == 0 {
                complete(id)
                outcome.completed.append(id)
            }
        }
        topic.joins = []
        topics[name] = topic
        return outcome
    }

    /// The server has answered about the topic: who waited for nothing else is told of the gap now.
    private mutating func regained(_ topic: inout Topic) -> [Subscriber] {
        var gaps: [Subscriber] = []
        for id in topic.regaining {
            guard let member = members[id] else { continue }
            members[id]!.regaining -= 1
            guard member.regaining == 1 else { continue }
            gaps.append(member.subscriber)
            settleGap(id)
        }
        topic.regaining = []
        return gaps
    }

    /// An ACL refuses a command as a whole, so the topics of a refused one are tried one by one.
    private mutating func refused(_ names: [SubscriptionTopic], _ message: String) -> Outcome {
        var outcome = Outcome()
        guard names.count == 1, let name = names.first else {
            for name in names {
                if let topic = topics[name], topic.isWanted, topic.outstanding == 1 {
                    outcome.commands += send([name], as: Command.subscribe)
                } else {
                    // It was left meanwhile, or left and wanted again: later commands decide.
                    outcome.add(confirm(name))
                }
            }
            return outcome
        }
        guard var topic = topics[name] else { return outcome }
        topic.outstanding -= 1
        guard topic.isWanted, topic.outstanding == 0 else {
            if topic.subscribers.isEmpty, topic.outstanding == 0 { topics[name] = nil } else { topics[name] = topic }
            return outcome
        }
        topic.isWanted = false
        let error = RedisError(serverMessage: message, command: "SUBSCRIBE")
        let joining = topic.joins
        topic.joins = []
        outcome.gaps = regained(&topic)
        topics[name] = topic
        for id in joining {
            guard joins[id] != nil else { continue }
            outcome.failed.append((id, error))
            outcome.commands += cancelJoin(id)
        }
        // Who is left had it before the connection broke, and may not have it any more.
        for subscriber in topics[name]?.subscribers ?? [] {
            outcome.ended.append((subscriber, error))
            for id in joins(of: subscriber.id) where joins.removeValue(forKey: id) != nil {
                outcome.failed.append((id, error))
            }
            outcome.commands += leave(subscriber.id)
        }
        return outcome
    }

    // MARK: Messages

    /// Calls `deliver` for each subscriber of the topic, with whether a gap must be told first.
    mutating func message(on name: SubscriptionTopic, deliver: (Subscriber, _ gapFirst: Bool) -> Void) {
        guard let topic = topics[name] else { return }
        for subscriber in topic.subscribers {
            if owedGaps > 0, members[subscriber.id]?.owesGap == true {
                settleGap(subscriber.id)
                deliver(subscriber, true)
            } else {
                deliver(subscriber, false)
            }
        }
    }

    private mutating func settleGap(_ id: UInt64) {
        guard members[id]?.owesGap == true else { return }
        members[id]!.owesGap = false
        owedGaps -= 1
    }

    // MARK: Batches

    private mutating func send(
        _ names: [SubscriptionTopic], as make: (SubscriptionTopic.Kind, [String]) -> Command
    ) -> [Command] {
        guard isConnected, !names.isEmpty else { return [] }
        var commands: [Command] = []
        for kind in [SubscriptionTopic.Kind.channel, .pattern, .shard] {
            let ofKind = names.lazy.filter { $0.kind == kind }.map(\.name)
            var rest = Array(ofKind)[...]
            while !rest.isEmpty {
                commands.append(make(kind, Array(rest.prefix(batch))))
                rest = rest.dropFirst(batch)
            }
        }
        inFlight.append(contentsOf: commands.map { Sent(command: $0) })
        return commands
    }
}

extension SubscriptionStateMachine.Outcome {
    mutating func add(_ other: Self) {
        completed += other.completed
        failed += other.failed
        gaps += other.gaps
        ended += other.ended
        commands += other.commands
        isUnexpected = isUnexpected || other.isUnexpected
    }
}
