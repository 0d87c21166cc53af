import NIOCore

/// The client's one subscription connection: runs a `SubscriptionStateMachine`, passes messages to
/// the subscribers' queues, reconnects, and probes a silent connection.
actor SubscriptionHub: SubscriptionSource {
    private typealias Machine = SubscriptionStateMachine<SubscriptionQueue>

    nonisolated let unownedExecutor: UnownedSerialExecutor
    private nonisolated let transport: Transport
    private nonisolated let instruments: Instruments
    private var machine = Machine()
    private var waiting: [Machine.JoinID: CheckedContinuation<Result<Void, RedisError>, Never>] = [:]
    private nonisolated let deadlines = DeadlineQueue()
    private var connection: RedisConnection?
    private var whenNeeded: CheckedContinuation<Void, Never>?
    private var stopped: RedisError?
    private var lastError: RedisError?
    /// Whether anything arrived since the last check, and whether a probe has been sent since then.
    private var sawBytes = false
    private var hasProbed = false

    /// Gets the subscribers of a topic that another server of the cluster has now.
    private nonisolated let evicted: @Sendable (SubscriptionTopic, [SubscriptionQueue]) -> Void

    init(
        transport: Transport, instruments: Instruments,
        evicted: @escaping @Sendable (SubscriptionTopic, [SubscriptionQueue]) -> Void = { _, _ in }
    ) {
        self.evicted = evicted
        self.transport = transport
        self.instruments = instruments
        unownedExecutor = transport.eventLoop.executor.asUnownedSerialExecutor()
    }

    // MARK: Subscribers

    /// Adds topics to a subscriber, and returns when the server has confirmed them.
    func join(_ queue: SubscriptionQueue, topics: [SubscriptionTopic]) async throws(RedisError) {
        if let stopped { throw stopped }
        for topic in topics where topic.name.isEmpty {
            throw RedisError(.invalidArgument, "the name of a topic is empty")
        }
        let id = RedisConnection.makeID()
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<Result<Void, RedisError>, Never>) in
                if Task.isCancelled {
                    continuation.resume(returning: .failure(RedisError(.cancelled, "the task was cancelled")))
                    return
                }
                let action = machine.join(queue, to: topics, id: id)
                write(action.commands)
                if action.isComplete {
                    continuation.resume(returning: .success(()))
                    return
                }
                let deadline = NIODeadline.now() + TimeAmount(transport.configuration.commandTimeout)
                deadlines.add(id, at: deadline, on: transport.eventLoop) { self.assumeIsolated { $0.timeOut(id) } }
                waiting[id] = continuation
                whenNeeded?.resume()
                whenNeeded = nil
            }
        } onCancel: {
            transport.eventLoop.execute {
                self.assumeIsolated { $0.cancelJoin(id, RedisError(.cancelled, "the task was cancelled")) }
            }
        }
        try result.get()
    }

    /// Removes topics from a subscriber, or, with `nil`, the subscriber itself.
    func leave(_ id: UInt64, topics: [SubscriptionTopic]?) {
        for join in machine.joins(of: id, on: topics) {
            cancelJoin(join, RedisError(.cancelled, "the topics were left before they were confirmed"))
        }
        write(machine.leave(id, topics: topics))
    }

    /// Removes a subscriber, from any thread.
    nonisolated func leaveSoon(_ id: UInt64) {
        transport.eventLoop.execute { self.assumeIsolated { $0.leave(id, topics: nil) } }
    }

    private func timeOut(_ id: Machine.JoinID) {
        let reason = lastError.map { ": \($0.message)" } ?? ""
        cancelJoin(
            id,
            RedisError(.timedOut, "the server did not confirm the subscription in time\(reason)", underlying: lastError)
        )
    }

    private func cancelJoin(_ id: Machine.JoinID, _ error: RedisError) {
        write(machine.cancelJoin(id))
        finish(id, .failure(error))
    }

    private func finish(_ id: Machine.JoinID, _ result: Result<Void, RedisError>) {
        guard let waiter = waiting.removeValue(forKey: id) else { return }
        deadlines.cancel(id)
        waiter.resume(returning: result)
    }

    // MARK: Connection

    /// Connects when there is a first subscriber, and again after every break, until the task is
    /// cancelled.
    func run() async {
        await Reconnecting(transport, instruments, name: "subscription").run {
            stopped != nil
        } connect: { () async throws(RedisError) in
            await untilNeeded()
            if Task.isCancelled || stopped != nil { throw RedisError(.clientStopped, "the client has stopped") }
            return try await abandonable { [transport] () async throws(RedisError) in
                try await RedisConnection.connect(transport, role: .command)
            } discard: {
                $0.closeSoon(RedisError(.clientStopped, "the client has stopped"))
            }
        } serve: { connection in
            await serve(connection)
        } failed: { error in
            lastError = error
            guard error.isPermanent else { return }
            for id in waiting.keys { cancelJoin(id, error) }
        }
    }

    private func untilNeeded() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                if machine.isNeeded || Task.isCancelled || stopped != nil {
                    continuation.resume()
                } else {
                    whenNeeded = continuation
                }
            }
        } onCancel: {
            transport.eventLoop.execute {
                self.assumeIsolated {
                    $0.whenNeeded?.resume()
                    $0.whenNeeded = nil
                }
            }
        }
    }

    private func serve(_ connection: RedisConnection) async {
        await connection.redirectReplies { replies in self.assumeIsolated { $0.received(replies) } }
        // No suspension from here to the writes, so that the machine is never connected without its commands being sent.
        self.connection = connection
        lastError = nil
        write(machine.connected())
        let interval = TimeAmount(transport.configuration.probeInterval)
        (sawBytes, hasProbed) = (true, false)
        let probing = transport.eventLoop.scheduleRepeatedTask(initialDelay: interval, delay: interval) { _ in
            self.assumeIsolated { $0.probe() }
        }
        let reason = await withTaskCancellationHandler {
            await connection.untilClosed()
        } onCancel: {
            connection.closeSoon(RedisError(.clientStopped, "the client has stopped"))
        }
        probing.cancel()
        self.connection = nil
        lastError = reason
        machine.disconnected()
    }

    private func write(_ commands: [Machine.Command]) {
        guard !commands.isEmpty, let connection else { return }
        let encoded = commands.map(\.encoded)
        connection.assumeIsolated { $0.write(encoded) }
    }

    /// Checks after each interval whether anything arrived. After one silent interval it sends a
    /// `PING`; after a second one the connection counts as dead.
    private func probe() {
        defer { sawBytes = false }
        if sawBytes {
            hasProbed = false
        } else if !hasProbed {
            hasProbed = true
            write(machine.ping())
        } else {
            instruments.subscriptionSilent()
            connection?.closeSoon(RedisError(.connectionLost, "the subscription connection is silent"))
        }
    }

    // MARK: Replies and messages

    private func received(_ replies: [RESPValue]) {
        sawBytes = true
        for reply in replies {
            if case .array(let parts) = reply, parts.count >= 3, let message = RedisMessage(parts) {
                machine.message(on: message.topic) { queue, gapFirst in
                    if gapFirst { pushGap(to: queue) }
                    queue.push(message)
                }
            } else {
                received(SubscriptionReply(reply))
            }
        }
    }

    private func received(_ reply: SubscriptionReply?) {
        switch reply {
        case .confirmed(let subscribe, let topic):
            switch machine.confirmed(subscribe: subscribe, topic) {
            case .confirm(let confirmation): carryOut(confirmation)
            // A server that loses a slot of the cluster ends the subscriptions of its channels by itself.
            case .unexpected where !subscribe && topic.kind == .shard: carryOut(machine.evict(topic), topic)
            case .unexpected: closeAfterUnexpectedReply()
            }
        case .pong:
            if case .unexpected = machine.pong() { closeAfterUnexpectedReply() }
        case .error(let message):
            switch machine.refused(message) {
            case .refuse(let refusal): carryOut(refusal)
            case .unexpected: closeAfterUnexpectedReply()
            }
        case nil:
            closeAfterUnexpectedReply()
        }
    }

    private func carryOut(_ confirmation: Machine.Confirmation) {
        for queue in confirmation.gaps { pushGap(to: queue) }
        for id in confirmation.completed { finish(id, .success(())) }
    }

    private func carryOut(_ refusal: Machine.Refusal) {
        write(refusal.commands)
        for queue in refusal.confirmation.gaps { pushGap(to: queue) }
        for (queue, error) in refusal.ended { queue.end(error) }
        for id in refusal.confirmation.completed { finish(id, .success(())) }
        for (id, error) in refusal.failed { finish(id, .failure(error)) }
        if let (topic, queues) = refusal.evicted, !queues.isEmpty { evicted(topic, queues) }
    }

    private func carryOut(_ eviction: Machine.Eviction, _ topic: SubscriptionTopic) {
        write(eviction.commands)
        let error = RedisError(.serverNotReady, "TRYAGAIN another server of the cluster has the channel")
        for id in eviction.joins { finish(id, .failure(error)) }
        if !eviction.subscribers.isEmpty { evicted(topic, eviction.subscribers) }
    }

    /// Removes a topic that another server of the cluster has now.
    func evict(_ topic: SubscriptionTopic) { carryOut(machine.evict(topic, isSubscribed: true), topic) }

    private func closeAfterUnexpectedReply() {
        connection?.closeSoon(RedisError(.protocolViolation, "an unexpected reply on the subscription connection"))
    }

    private func pushGap(to queue: SubscriptionQueue) {
        instruments.subscriptionGap()
        queue.push(gap: .reconnected)
    }

    // MARK: Stop

    /// Closes the connection, because its server has left the cluster. The subscribers have moved to other
    /// connections.
    func retire() {
        let error = RedisError(.serverNotReady, "TRYAGAIN the server serves no slot of the cluster any more")
        stopped = error
        for id in waiting.keys { cancelJoin(id, error) }
        connection?.closeSoon(error)
        whenNeeded?.resume()
        whenNeeded = nil
    }

    /// Ends all subscriptions with `.clientStopped`, and closes the connection.
    func stop() {
        let error = RedisError(.clientStopped, "the client has stopped")
        stopped = error
        for queue in machine.allSubscribers { queue.end(error) }
        for id in waiting.keys { cancelJoin(id, error) }
        connection?.closeSoon(error)
        whenNeeded?.resume()
        whenNeeded = nil
    }
}
