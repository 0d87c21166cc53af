import NIOCore

/// The subscriptions of a client of a cluster.
///
/// Channels and patterns share one connection to any master, because each server passes on what is
/// published on the others. A sharded channel is subscribed at the master of its slot, and moves with
/// the slot: its subscribers get a gap when it is lost, and another one when it is subscribed again.
actor ClusterSubscriptions {
    typealias Endpoint = RedisConfiguration.Endpoint

    private struct Subscriber {
        var queue: SubscriptionQueue
        /// Its sharded channels.
        var topics: Set<SubscriptionTopic> = []
    }

    nonisolated let unownedExecutor: UnownedSerialExecutor
    /// Asks for a new map of the slots.
    nonisolated let refreshRequests: AsyncStream<Void>
    private nonisolated let requestRefresh: AsyncStream<Void>.Continuation
    private nonisolated let transport: Transport
    private nonisolated let instruments: Instruments
    private nonisolated let ordinary: SubscriptionHub
    private nonisolated let newHubs: AsyncStream<SubscriptionHub>
    private nonisolated let hubFeed: AsyncStream<SubscriptionHub>.Continuation
    private var map: SlotMap?
    /// Known from the first sharded subscription on.
    private weak var cluster: Cluster?
    private var hubs: [Endpoint: SubscriptionHub] = [:]
    /// The server at which each sharded channel is subscribed.
    private var places: [SubscriptionTopic: Endpoint] = [:]
    private var subscribers: [UInt64: Subscriber] = [:]
    private var isStopped = false

    init(transport: Transport, anyMaster: MasterSource, instruments: Instruments) {
        self.transport = transport
        self.instruments = instruments
        ordinary = SubscriptionHub(transport: transport.from(anyMaster), instruments: instruments)
        (newHubs, hubFeed) = AsyncStream.makeStream()
        (refreshRequests, requestRefresh) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        unownedExecutor = transport.eventLoop.executor.asUnownedSerialExecutor()
    }

    // MARK: Subscribers

    /// Adds topics to a subscriber, and returns when they are confirmed.
    func join(
        _ queue: SubscriptionQueue, topics: [SubscriptionTopic], _ cluster: Cluster
    ) async throws(RedisError) {
        let sharded = topics.filter { $0.kind == .shard }
        let others = topics.filter { $0.kind != .shard }
        if !others.isEmpty || sharded.isEmpty {
            // The connection would otherwise be tried, and its failure logged, before the first map names a master.
            _ = try await cluster.node(for: nil, Cluster.Attempts(deadline: cluster.deadline(nil)))
            try await ordinary.join(queue, topics: others)
        }
        guard !sharded.isEmpty else { return }
        self.cluster = cluster
        let added = Set(sharded).subtracting(subscribers[queue.id]?.topics ?? [])
        subscribers[queue.id, default: Subscriber(queue: queue)].topics.formUnion(sharded)
        do throws(RedisError) {
            var attempts = Cluster.Attempts(deadline: cluster.deadline(nil))
            for (slot, topics) in Dictionary(grouping: sharded, by: { HashSlot.of($0.name) }) {
                try await join(queue, topics, slot, cluster, &attempts)
            }
        } catch {
            await leave(queue.id, topics: Array(added) + others)
            throw error
        }
    }

    /// Subscribes to sharded channels of one slot at its master, wherever it moves meanwhile.
    private func join(
        _ queue: SubscriptionQueue, _ topics: [SubscriptionTopic], _ slot: Int, _ cluster: Cluster,
        _ attempts: inout Cluster.Attempts
    ) async throws(RedisError) {
        while true {
            let endpoint = try await cluster.node(for: slot, attempts).configuration.endpoint
            do throws(RedisError) {
                let hub = try hub(at: endpoint)
                for topic in topics { places[topic] = endpoint }
                return try await hub.join(queue, topics: topics)
            } catch {
                guard let refusal = error.refusal else { throw error }
                try await cluster.follow(refusal, error, endpoint, &attempts)
            }
        }
    }

    /// Removes topics from a subscriber, or, with `nil`, the subscriber itself.
    func leave(_ id: UInt64, topics: [SubscriptionTopic]?) async {
        let sharded = topics.map { Set($0.filter { $0.kind == .shard }) } ?? subscribers[id]?.topics ?? []
        subscribers[id]?.topics.subtract(sharded)
        if subscribers[id]?.topics.isEmpty == true { subscribers[id] = nil }
        let all = Array(hubs.values)
        let hubs = topics == nil ? all : Set(sharded.compactMap { places[$0] }).compactMap { self.hubs[$0] }
        for topic in sharded where !subscribers.values.contains(where: { $0.topics.contains(topic) }) {
            places[topic] = nil
        }
        for hub in hubs { await hub.leave(id, topics: topics.map { $0.filter { $0.kind == .shard } }) }
        await ordinary.leave(id, topics: topics.map { $0.filter { $0.kind != .shard } })
    }

    // MARK: Servers

    private func hub(at endpoint: Endpoint) throws(RedisError) -> SubscriptionHub {
        if isStopped { throw Cluster.stopped }
        if let hub = hubs[endpoint] { return hub }
        let eventLoop = transport.eventLoop
        let hub = SubscriptionHub(transport: transport.to(endpoint), instruments: instruments) {
            [weak self] topic, queues in
            guard let self else { return }
            eventLoop.execute { self.assumeIsolated { $0.evicted(topic, queues) } }
        }
        hubs[endpoint] = hub
        hubFeed.yield(hub)
        return hub
    }

    /// Moves sharded channels to the masters that have their slots now.
    func update(_ map: SlotMap) async {
        self.map = map
        for (topic, place) in places {
            guard let owner = map.owner(of: HashSlot.of(topic.name)), owner != place else { continue }
            places[topic] = owner
            await hubs[place]?.evict(topic)
        }
        for (endpoint, hub) in hubs where !map.masters.contains(endpoint) && !places.values.contains(endpoint) {
            hubs[endpoint] = nil
            await hub.retire()
        }
    }

    /// Subscribes again to a channel that a server has lost.
    private func evicted(_ topic: SubscriptionTopic, _ queues: [SubscriptionQueue]) {
        requestRefresh.yield()
        for queue in queues where isWanted(topic, by: queue) {
            pushGap(to: queue)
            Task { await resubscribe(topic, queue) }
        }
    }

    private func resubscribe(_ topic: SubscriptionTopic, _ queue: SubscriptionQueue) async {
        var pauses = Backoff(.milliseconds(10)...(.seconds(1)))
        while isWanted(topic, by: queue), !isStopped {
            if let endpoint = map?.owner(of: HashSlot.of(topic.name)) {
                do throws(RedisError) {
                    let hub = try hub(at: endpoint)
                    places[topic] = endpoint
                    try await hub.join(queue, topics: [topic])
                    // It may have been left meanwhile, which the hub did not know.
                    if isWanted(topic, by: queue) {
                        pushGap(to: queue)
                    } else {
                        await hub.leave(queue.id, topics: [topic])
                    }
                    return
                } catch {
                    if error.isPermanent { return queue.end(error) }
                    if case .moved(let slot, let host, let port)? = error.refusal, let cluster {
                        await cluster.moved(
                            slot: slot, from: endpoint, to: cluster.endpoint(host, port, from: endpoint))
                    }
                }
            }
            requestRefresh.yield()
            try? await Task.sleep(for: pauses.next())
        }
    }

    private func isWanted(_ topic: SubscriptionTopic, by queue: SubscriptionQueue) -> Bool {
        subscribers[queue.id]?.topics.contains(topic) == true
    }

    private func pushGap(to queue: SubscriptionQueue) {
        instruments.subscriptionGap()
        queue.push(gap: .reconnected)
    }

    // MARK: Run

    nonisolated func run() async {
        await withDiscardingTaskGroup { group in
            group.addTask { await self.ordinary.run() }
            for await hub in newHubs { group.addTask { await hub.run() } }
        }
    }

    /// Ends all subscriptions with `.clientStopped`.
    func stop() async {
        isStopped = true
        hubFeed.finish()
        requestRefresh.finish()
        await ordinary.stop()
        for hub in hubs.values { await hub.stop() }
        // Those whose channel was about to move are in no hub.
        for subscriber in subscribers.values { subscriber.queue.end(Cluster.stopped) }
        subscribers = [:]
    }
}

/// The source of a subscription in a cluster, which needs the map of the slots and the connections.
struct ClusterSubscriptionSource: SubscriptionSource {
    let cluster: Cluster

    func join(_ queue: SubscriptionQueue, topics: [SubscriptionTopic]) async throws(RedisError) {
        try await cluster.subscriptions.join(queue, topics: topics, cluster)
    }

    func leave(_ id: UInt64, topics: [SubscriptionTopic]?) async {
        await cluster.subscriptions.leave(id, topics: topics)
    }

    func leaveSoon(_ id: UInt64) {
        let subscriptions = cluster.subscriptions
        Task { await subscriptions.leave(id, topics: nil) }
    }
}
