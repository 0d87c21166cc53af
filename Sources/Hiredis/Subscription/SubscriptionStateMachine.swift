import DequeModule

/// The state of a subscription connection, without any I/O.
///
/// It tracks which subscribers want which topics, which commands are in flight, which topics the
/// server has confirmed, which joins wait for a confirmation, and which subscribers need a gap event
/// because messages may have been lost while the connection was down.
///
/// The server answers `SUBSCRIBE`, `UNSUBSCRIBE` and `PING` in the order in which they were sent,
/// with one confirmation for each topic. So a topic is subscribed when the last command for it was
/// `SUBSCRIBE` and no confirmation is outstanding. `Subscriber` is the receiver of messages; the
/// machine only compares ids.
///
/// `SUBSCRIBE` and `UNSUBSCRIBE` stand for the commands of all kinds of topics: patterns use
/// `PSUBSCRIBE` and `PUNSUBSCRIBE`, shard channels `SSUBSCRIBE` and `SUNSUBSCRIBE`.
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
        /// The subscribers that had it when the connection broke. They must receive a gap event when
        /// the server has answered for all of their topics again.
        var awaitingResubscription: [UInt64] = []

        var isConfirmed: Bool { isWanted && outstanding == 0 }
    }

    private struct SubscriberState {
        var subscriber: Subscriber
        /// The subscriber's topics, each with the incomplete joins that added it.
        ///
        /// Cancelling a join removes it from these lists, and removes each topic whose list becomes
        /// empty. Completing a join empties the lists of its topics, so that no later cancellation
        /// removes them.
        var topics: [SubscriptionTopic: [JoinID]] = [:]
        /// The number of topics that were confirmed when the connection broke, and for which the
        /// server has not answered since.
        var unconfirmedTopics = 0
        /// Whether it must receive a gap event before the next message.
        var needsGapEvent = false
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
    private var subscriberStates: [UInt64: SubscriberState] = [:]
    private var joins: [JoinID: Join] = [:]
    private var inFlight = Deque<Sent>()
    private var isConnected = false
    /// The number of subscribers that must receive a gap event before the next message.
    private var pendingGapEvents = 0
    private let maxTopicsPerCommand: Int

    init(maxTopicsPerCommand: Int = 1000) { self.maxTopicsPerCommand = maxTopicsPerCommand }

    var isNeeded: Bool { !topics.isEmpty }
    var isEmpty: Bool { topics.isEmpty && subscriberStates.isEmpty && joins.isEmpty }
    var allSubscribers: [Subscriber] { subscriberStates.values.map(\.subscriber) }

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
        var state = subscriberStates.removeValue(forKey: subscriber.id) ?? SubscriberState(subscriber: subscriber)
        for name in wanted {
            var topic = topics[name] ?? Topic()
            if state.topics[name] == nil { topic.subscribers.append(subscriber) }
            if state.topics[name]?.isEmpty != true { state.topics[name, default: []].append(id) }
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
        subscriberStates[subscriber.id] = state
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
        guard var state = subscriberStates.removeValue(forKey: id) else { return [] }
        var unneeded: [SubscriptionTopic] = []
        for name in wanted ?? Array(state.topics.keys) {
            guard state.topics.removeValue(forKey: name) != nil, var topic = topics[name] else { continue }
            topic.subscribers.removeAll { $0.id == id }
            if topic.subscribers.isEmpty {
                if isConnected, topic.isWanted {
                    topic.isWanted = false
                    topic.outstanding += 1
                    unneeded.append(name)
                } else if topic.outstanding == 0 {
                    for other in topic.awaitingResubscription where other != id {
                        subscriberStates[other]?.unconfirmedTopics -= 1
                    }
                    if topic.awaitingResubscription.contains(id) { state.unconfirmedTopics -= 1 }
                    topics[name] = nil
                    continue
                }
            }
            topics[name] = topic
        }
        if wanted != nil { subscriberStates[id] = state } else if state.needsGapEvent { pendingGapEvents -= 1 }
        return send(unneeded, as: Command.unsubscribe)
    }

    /// Returns the waits for confirmation that would never end if the subscriber left these topics,
    /// or all.
    func joins(of id: UInt64, on wanted: [SubscriptionTopic]? = nil) -> [JoinID] {
        (wanted ?? subscriberStates[id].map { Array($0.topics.keys) } ?? [])
            .flatMap { topics[$0]?.joins ?? [] }
            .filter { joins[$0]?.subscriber == id }
    }

    /// Ends a wait for confirmation, and removes the topics that only this join has added.
    mutating func cancelJoin(_ id: JoinID) -> [Command] {
        guard let join = joins.removeValue(forKey: id) else { return [] }
        var left: [SubscriptionTopic] = []
        for name in join.wanted {
            guard var reasons = subscriberStates[join.subscriber]?.topics[name], reasons.contains(id) else { continue }
            reasons.removeAll { $0 == id }
            if reasons.isEmpty { left.append(name) } else { subscriberStates[join.subscriber]!.topics[name] = reasons }
        }
        return leave(join.subscriber, topics: left)
    }

    private mutating func complete(_ id: JoinID) {
        guard let join = joins.removeValue(forKey: id) else { return }
        for name in join.wanted where subscriberStates[join.subscriber]?.topics[name]?.contains(id) == true {
            subscriberStates[join.subscriber]!.topics[name] = []
        }
    }

    // MARK: Connection

    /// Records a new connection, and subscribes again to every wanted topic.
    mutating func connected() -> [Command] {
        isConnected = true
        for name in topics.keys {
            topics[name]!.isWanted = true
            topics[name]!.outstanding = 1
        }
        return send(Array(topics.keys), as: Command.subscribe)
    }

    /// Records the end of the connection. Subscribers may miss messages until their topics are
    /// confirmed again.
    mutating func disconnected() {
        isConnected = false
        inFlight.removeAll()
        for id in subscriberStates.keys { subscriberStates[id]!.unconfirmedTopics = 0 }
        for name in Array(topics.keys) {
            var topic = topics[name]!
            if topic.isConfirmed { topic.awaitingResubscription = topic.subscribers.map(\.id) }
            topic.isWanted = false
            topic.outstanding = 0
            topic.joins = []
            if topic.subscribers.isEmpty {
                topics[name] = nil
                continue
            }
            for id in topic.awaitingResubscription { subscriberStates[id]?.unconfirmedTopics += 1 }
            topics[name] = topic
        }
        for id in subscriberStates.keys
        where subscriberStates[id]!.unconfirmedTopics > 0 && !subscriberStates[id]!.needsGapEvent {
            subscriberStates[id]!.needsGapEvent = true
            pendingGapEvents += 1
        }
        // A join of several topics waits again for those that were already confirmed.
        for (id, join) in joins {
            let awaited = join.wanted.filter { name in
                subscriberStates[join.subscriber]?.topics[name].map { $0.isEmpty || $0.contains(id) } == true
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

    /// The joins and gap events that a topic's confirmation completes.
    struct Confirmation {
        var completed: [JoinID] = []
        /// The subscribers that must receive a gap event now, because the server has answered for the
        /// last topic that they had when the connection broke.
        ///
        /// A subscriber is listed even if it received a gap event with an earlier message: messages
        /// on the other topics may have been lost since that event.
        var gaps: [Subscriber] = []
    }

    enum ConfirmationAction {
        case confirm(Confirmation)
        /// The reply does not match what was sent.
        case unexpected
    }

    /// Records that the server confirms a `SUBSCRIBE` or an `UNSUBSCRIBE` for one topic.
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

    /// Records the reply to a `PING`.
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
        /// Subscribers that have lost the right to a topic that they had. They are removed from all of
        /// their topics.
        var ended: [(Subscriber, RedisError)] = []
        /// A topic that another server of the cluster has now, and the subscribers that had it. They are
        /// removed from it.
        var evicted: (SubscriptionTopic, [Subscriber])?
        var commands: [Command] = []
    }

    enum RefusalAction {
        case refuse(Refusal)
        /// The reply does not match what was sent.
        case unexpected
    }

    /// Records that the server refuses a command.
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
        confirmation.gaps = resubscribed(&topic)
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

    /// Records that the server has answered for a topic after a reconnect.
    ///
    /// - Returns: the subscribers that wait for no other topic and must receive a gap event now,
    ///   also if they received one with an earlier message: see ``Confirmation/gaps``.
    private mutating func resubscribed(_ topic: inout Topic) -> [Subscriber] {
        var gaps: [Subscriber] = []
        for id in topic.awaitingResubscription {
            guard let state = subscriberStates[id] else { continue }
            subscriberStates[id]!.unconfirmedTopics -= 1
            guard state.unconfirmedTopics == 1 else { continue }
            gaps.append(state.subscriber)
            settleGap(id)
        }
        topic.awaitingResubscription = []
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
        if message.hasPrefix("MOVED") {
            topics[name]?.outstanding -= 1
            let eviction = evict(name)
            let error = RedisError(serverMessage: message, command: name.kind.verb(true))
            refusal.failed = eviction.joins.map { ($0, error) }
            refusal.evicted = (name, eviction.subscribers)
            return refusal
        }
        guard var topic = topics[name] else { return refusal }
        topic.outstanding -= 1
        guard topic.isWanted, topic.outstanding == 0 else {
            if topic.subscribers.isEmpty, topic.outstanding == 0 { topics[name] = nil } else { topics[name] = topic }
            return refusal
        }
        topic.isWanted = false
        let error = RedisError(serverMessage: message, command: name.kind.verb(true))
        let joining = topic.joins
        topic.joins = []
        refusal.confirmation.gaps = resubscribed(&topic)
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

    // MARK: Clusters

    /// The subscribers and the joins of a topic that another server has now.
    struct Eviction {
        /// The subscribers that had the topic, without those that only a failed join has added.
        var subscribers: [Subscriber] = []
        var joins: [JoinID] = []
        var commands: [Command] = []
    }

    /// Removes a topic from all of its subscribers, because another server has it now. The joins that wait
    /// for it fail.
    ///
    /// - Parameter isSubscribed: whether the server still has the subscription.
    mutating func evict(_ name: SubscriptionTopic, isSubscribed: Bool = false) -> Eviction {
        var eviction = Eviction()
        guard let topic = topics[name] else { return eviction }
        if !isSubscribed { topics[name]!.isWanted = false }
        for id in topic.joins where joins[id] != nil {
            eviction.joins.append(id)
            eviction.commands += cancelJoin(id)
        }
        for subscriber in topics[name]?.subscribers ?? [] {
            eviction.subscribers.append(subscriber)
            eviction.commands += leave(subscriber.id, topics: [name])
        }
        return eviction
    }

    // MARK: Messages

    /// Calls `deliver` for each subscriber of the topic, with whether the subscriber must receive a
    /// gap event first.
    mutating func message(on name: SubscriptionTopic, deliver: (Subscriber, _ gapFirst: Bool) -> Void) {
        guard let topic = topics[name] else { return }
        for subscriber in topic.subscribers {
            if pendingGapEvents > 0, subscriberStates[subscriber.id]?.needsGapEvent == true {
                settleGap(subscriber.id)
                deliver(subscriber, true)
            } else {
                deliver(subscriber, false)
            }
        }
    }

    private mutating func settleGap(_ id: UInt64) {
        guard subscriberStates[id]?.needsGapEvent == true else { return }
        subscriberStates[id]!.needsGapEvent = false
        pendingGapEvents -= 1
    }

    // MARK: Commands

    private mutating func send(
        _ names: [SubscriptionTopic], as make: (SubscriptionTopic.Kind, [String]) -> Command
    ) -> [Command] {
        guard isConnected, !names.isEmpty else { return [] }
        var commands: [Command] = []
        for kind in [SubscriptionTopic.Kind.channel, .pattern, .shard] {
            let ofKind = names.lazy.filter { $0.kind == kind }.map(\.name)
            // A cluster refuses a command about several slots.
            let groups = kind == .shard ? Array(Dictionary(grouping: ofKind, by: HashSlot.of).values) : [Array(ofKind)]
            for group in groups {
                var rest = group[...]
                while !rest.isEmpty {
                    commands.append(make(kind, Array(rest.prefix(maxTopicsPerCommand))))
                    rest = rest.dropFirst(maxTopicsPerCommand)
                }
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
