import DequeModule

/// The topics that subscribers want, the commands that were sent for them, and what the server has
/// confirmed, without any I/O.
///
/// The server answers `SUBSCRIBE`, `UNSUBSCRIBE` and `PING` in the order in which they were sent,
/// with one confirmation for each topic. So a topic is subscribed when the last command for it was
/// `SUBSCRIBE` and no confirmation is outstanding. `Subscriber` is the receiver of messages; the
/// machine only compares ids.
struct SubscriptionStateMachine<Subscriber: Identifiable> where Subscriber.ID == UInt64 {
    /// Names a wait for the confirmation of topics.
    typealias JoinID = UInt64

    enum Command: Equatable {
        case subscribe(SubscriptionTopic.Kind, [String])
        case unsubscribe(SubscriptionTopic.Kind, [String])
        case ping
    }

    private struct Topic {
        var subscribers: [Subscriber] = []
        /// Whether the last command for it was `SUBSCRIBE`.
        var isWanted = false
        /// The number of commands for it that the server has not confirmed.
        var outstanding = 0
        /// The joins that wait for its confirmation.
        var joins: [JoinID] = []
        /// The subscribers that had it when the connection broke, and must be told of a gap when it
        /// is confirmed again.
        var regaining: [UInt64] = []

        var isConfirmed: Bool { isWanted && outstanding == 0 }
    }

    private struct Member {
        var subscriber: Subscriber
        /// Each topic with the joins that added it and are not complete. A topic is removed with
        /// the last of them when they are cancelled. A topic without any stays.
        var topics: [SubscriptionTopic: [JoinID]] = [:]
        /// The number of topics that it had and that are not confirmed again yet.
        var regaining = 0
        /// Whether it must be told of a gap before the next message.
        var owesGap = false
    }

    private struct Join {
        var subscriber: UInt64
        var wanted: [SubscriptionTopic]
        /// The number of topics that are not confirmed yet.
        var missing = 0
    }

    private struct Sent {
        var command: Command
        /// The number of its topics that the server has confirmed.
        var confirmed = 0
    }

    private var topics: [SubscriptionTopic: Topic] = [:]
    private var members: [UInt64: Member] = [:]
    private var joins: [JoinID: Join] = [:]
    private var inFlight = Deque<Sent>()
    private var isConnected = false
    /// The number of members that must be told of a gap.
    private var owedGaps = 0
    /// The maximum number of topics in one command.
    private let batch: Int

    init(batch: Int = 1000) { self.batch = batch }

    var isNeeded: Bool { !topics.isEmpty }
    var isEmpty: Bool { topics.isEmpty && members.isEmpty && joins.isEmpty }
    var allSubscribers: [Subscriber] { members.values.map(\.subscriber) }

    // MARK: Join and leave

    struct JoinAction {
        var commands: [Command] = []
        /// Whether all topics are confirmed already.
        var isComplete = false
    }

    /// Adds topics to a subscriber. `id` names the wait for their confirmation.
    mutating func join(_ subscriber: Subscriber, to wanted: [SubscriptionTopic], id: JoinID) -> JoinAction {
        var action = JoinAction()
        var fresh: [SubscriptionTopic] = []
        var join = Join(subscriber: subscriber.id, wanted: wanted)
        // Removed, so that it is changed in place: a subscriber may have many topics and add them one by one.
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

    /// Removes topics from a subscriber, or, with `nil`, the subscriber itself.
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

    /// Returns the waits for confirmation that would never end if the subscriber left these topics,
    /// or all.
    func joins(of id: UInt64, on wanted: [SubscriptionTopic]? = nil) -> [JoinID] {
        (wanted ?? members[id].map { Array($0.topics.keys) } ?? [])
            .flatMap { topics[$0]?.joins ?? [] }
            .filter { joins[$0]?.subscriber == id }
    }

    /// Ends a wait for confirmation, and removes the topics that only this join has added.
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

    /// Notes a new connection, and subscribes again to every wanted topic.
    mutating func connected() -> [Command] {
        isConnected = true
        for name in topics.keys {
            topics[name]!.isWanted = true
            topics[name]!.outstanding = 1
        }
        return send(Array(topics.keys), as: Command.subscribe)
    }

    /// Notes the end of the connection. Subscribers may miss messages until their topics are
    /// confirmed again.
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
        // A join of several topics waits again for those that were already confirmed.
        for (id, join) in joins {
            let awaited = join.wanted.filter { name in
                members[join.subscriber]?.topics[name].map { $0.isEmpty || $0.contains(id) } == true
            }
            for name in awaited { topics[name]!.joins.append(id) }
            joins[id]!.missing = awaited.count
        }
    }

    /// Probes the connection.
    mutating func ping() -> [Command] {
        guard isConnected else { return [] }
        inFlight.append(Sent(command: .ping))
        return [.ping]
    }

    // MARK: Replies

    /// What a topic's confirmation completes.
    struct Confirmation {
        var completed: [JoinID] = []
        /// The subscribers that must be told that messages may be missing.
        var gaps: [Subscriber] = []
    }

    enum ConfirmationAction {
        case confirm(Confirmation)
        /// The reply does not match what was sent.
        case unexpected
    }

    /// Notes that the server confirms a `SUBSCRIBE` or an `UNSUBSCRIBE` for one topic.
    mutating func confirmed(subscribe: Bool, _ name: SubscriptionTopic) -> ConfirmationAction {
        guard var head = inFlight.first else { return .unexpected }
        switch (head.command, subscribe) {
        case (.subscribe(let kind, let names), true), (.unsubscribe(let kind, let names), false):
            guard kind == name.kind, names[head.confirmed] == name.name else { return .unexpected }
            head.confirmed += 1
            if head.confirmed == names.count { inFlight.removeFirst() } else { inFlight[0] = head }
            return .confirm(confirm(name))
        default:
            return .unexpected
        }
    }

    enum PongAction {
        case none
        /// The reply does not match what was sent.
        case unexpected
    }

    /// Notes the reply to a `PING`.
    mutating func pong() -> PongAction {
        guard inFlight.first?.command == .ping else { return .unexpected }
        inFlight.removeFirst()
        return .none
    }

    /// The consequences of an error reply.
    struct Refusal {
        var confirmation = Confirmation()
        /// Joins that fail.
        var failed: [(JoinID, RedisError)] = []
        /// Subscribers that have permanently lost a topic.
        var ended: [(Subscriber, RedisError)] = []
        var commands: [Command] = []
    }

    enum RefusalAction {
        case refuse(Refusal)
        /// The reply does not match what was sent.
        case unexpected
    }

    /// Notes that the server refuses a command.
    mutating func refused(_ message: String) -> RefusalAction {
        guard let head = inFlight.popFirst() else { return .unexpected }
        switch head.command {
        case .subscribe(let kind, let names):
            return .refuse(refuse(names[head.confirmed...].map { SubscriptionTopic(kind, $0) }, message))
        case .unsubscribe(let kind, let names):
            var refusal = Refusal()
            for name in names[head.confirmed...] { refusal.confirmation += confirm(SubscriptionTopic(kind, name)) }
            return .refuse(refusal)
        case .ping:
            // A user without the right to PING still proves that the connection works.
            return .refuse(Refusal())
        }
    }

    private mutating func confirm(_ name: SubscriptionTopic) -> Confirmation {
        var confirmation = Confirmation()
        guard var topic = topics[name] else { return confirmation }
        topic.outstanding -= 1
        guard topic.outstanding == 0 else {
            topics[name] = topic
            return confirmation
        }
        confirmation.gaps = regained(&topic)
        guard topic.isWanted else {
            topics[name] = nil
            return confirmation
        }
        for id in topic.joins {
            guard joins[id] != nil else { continue }
            joins[id]!.missing -= 1
            if joins[id]!.missing == 0 {
                complete(id)
                confirmation.completed.append(id)
            }
        }
        topic.joins = []
        topics[name] = topic
        return confirmation
    }

    /// Notes that the server has answered for a topic. Returns the subscribers that wait for no
    /// other topic and must be told of the gap now.
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

    /// Tries the topics of a refused command one by one, because an ACL refuses a command as a
    /// whole.
    private mutating func refuse(_ names: [SubscriptionTopic], _ message: String) -> Refusal {
        var refusal = Refusal()
        guard names.count == 1, let name = names.first else {
            for name in names {
                if let topic = topics[name], topic.isWanted, topic.outstanding == 1 {
                    refusal.commands += send([name], as: Command.subscribe)
                } else {
                    // It was left meanwhile, or left and joined again: later commands decide.
                    refusal.confirmation += confirm(name)
                }
            }
            return refusal
        }
        guard var topic = topics[name] else { return refusal }
        topic.outstanding -= 1
        guard topic.isWanted, topic.outstanding == 0 else {
            if topic.subscribers.isEmpty, topic.outstanding == 0 { topics[name] = nil } else { topics[name] = topic }
            return refusal
        }
        topic.isWanted = false
        let error = RedisError(serverMessage: message, command: "SUBSCRIBE")
        let joining = topic.joins
        topic.joins = []
        refusal.confirmation.gaps = regained(&topic)
        topics[name] = topic
        for id in joining {
            guard joins[id] != nil else { continue }
            refusal.failed.append((id, error))
            refusal.commands += cancelJoin(id)
        }
        // The remaining subscribers had it before the connection broke, and have lost the right to it.
        for subscriber in topics[name]?.subscribers ?? [] {
            refusal.ended.append((subscriber, error))
            for id in joins(of: subscriber.id) where joins.removeValue(forKey: id) != nil {
                refusal.failed.append((id, error))
            }
            refusal.commands += leave(subscriber.id)
        }
        return refusal
    }

    // MARK: Messages

    /// Calls `deliver` for each subscriber of the topic, and says whether the subscriber must be
    /// told of a gap first.
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

    // MARK: Commands

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

extension SubscriptionStateMachine.Confirmation {
    fileprivate static func += (left: inout Self, right: Self) {
        left.completed += right.completed
        left.gaps += right.gaps
    }
}
