// The process's one subscription connection: runs SubscriptionStateMachine, hands messages to the subscribers' queues,
// reconnects, and probes a connection that is suspiciously silent.
import NIOCore

actor SubscriptionHub {
    private typealias Machine = SubscriptionStateMachine<SubscriptionQueue>

    private struct Waiting {
        var continuation: CheckedContinuation<Result<Void, RedisError>, Never>
        var timer: Scheduled<Void>
    }

    nonisolated let unownedExecutor: UnownedSerialExecutor
    private nonisolated let transport: Transport
    private nonisolated let instruments: Instruments
    private var machine = Machine()
    private var waiting: [Machine.JoinID: Waiting] = [:]
    private var connection: RedisConnection?
    private var whenNeeded: CheckedContinuation<Void, Never>?
    private var stopped: RedisError?
    private var lastError: RedisError?
    /// Whether anything came since the last look, and whether a probe has been sent since then.
    private var sawBytes = false
    private var hasProbed = false

    init(transport: Transport, instruments: Instruments) {
        self.transport = transport
        self.instruments = instruments
        unownedExecutor = transport.eventLoop.executor.asUnownedSerialExecutor()
    }

    // MARK: Subscribers

    /// Returns when the server has confirmed the topics.
    func join(_ queue: SubscriptionQueue, topics: [SubscriptionTopic]) async throws(RedisError) {
        if let stopped { throw stopped }
        for topic in topics where topic.name.isEmpty {
            throw RedisError(.invalidArgument, "a topic's name is empty")
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
                let timeout = TimeAmount(transport.configuration.commandTimeout)
                let timer = transport.eventLoop.scheduleTask(in: timeout) {
                    self.assumeIsolated { $0.timeOut(id) }
                }
                waiting[id] = Waiting(continuation: continuation, timer: timer)
                whenNeeded?.resume()
                whenNeeded = nil
            }
        } onCancel: {
            transport.eventLoop.execute {
                self.assumeIsolated { $0.give(up: id, RedisError(.cancelled, "the task was cancelled")) }
            }
        }
        try result.get()
    }

    func leave(_ id: UInt64, topics: [SubscriptionTopic]? = nil) {
        for join in machine.joins(of: id, on: topics) {
            give(up: join, RedisError(.cancelled, "the topics were left before they were confirmed"))
        }
        write(machine.leave(id, topics: topics))
    }

    /// Leaves everything, from wherever the caller is.
    nonisolated func leaveSoon(_ id: UInt64) {
        transport.eventLoop.execute { self.assumeIsolated { $0.leave(id) } }
    }

    private func timeOut(_ id: Machine.JoinID) {
        let reason = lastError.map { ": \($0.message)" } ?? ""
        give(
            up: id, RedisError(.timedOut, "the subscription was not confirmed in time\(reason)", underlying: lastError))
    }

    private func give(up id: Machine.JoinID, _ error: RedisError) {
        write(machine.cancelJoin(id))
        finish(id, .failure(error))
    }

    private func finish(_ id: Machine.JoinID, _ result: Result<Void, RedisError>) {
        guard let waiter = waiting.removeValue(forKey: id) else { return }
        waiter.timer.cancel()
        waiter.continuation.resume(returning: result)
    }

    // MARK: Connection

    /// Connects when the first subscriber comes, and again after every break, until the task is cancelled.
    func run() async {
        await Reconnecting(transport.configuration.reconnectDelay, instruments, name: "subscription").run {
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
            for id in waiting.keys { give(up: id, error) }
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
        await connection.takeOver { replies in self.assumeIsolated { $0.received(replies) } }
        // From here to the writes there is no suspension: nobody sees the machine connected without its commands.
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

    /// Looks every interval whether anything came: silent once, a PING is sent; silent again, the connection is dead.
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

    // MARK: What the server says

    private func received(_ replies: [RESPValue]) {
        sawBytes = true
        for reply in replies {
            if case .array(let parts) = reply, parts.count >= 3, let message = RedisMessage(parts) {
                machine.message(on: message.topic) { queue, gapFirst in
                    if gapFirst { tellGap(queue) }
                    queue.push(message)
                }
            } else {
                carryOut(Machine.Event(reply).map { machine.received($0) } ?? Machine.Outcome(isUnexpected: true))
            }
        }
    }

    private func carryOut(_ outcome: Machine.Outcome) {
        write(outcome.commands)
        for queue in outcome.gaps { tellGap(queue) }
        for (queue, error) in outcome.ended { queue.end(error) }
        for id in outcome.completed { finish(id, .success(())) }
        for (id, error) in outcome.failed { finish(id, .failure(error)) }
        if outcome.isUnexpected {
            connection?.closeSoon(RedisError(.protocolViolation, "an unexpected reply on the subscription connection"))
        }
    }

    private func tellGap(_ queue: SubscriptionQueue) {
        instruments.subscriptionGap()
        queue.push(gap: .reconnected)
    }

    // MARK: Stop

    func stop() {
        let error = RedisError(.clientStopped, "the client has stopped")
        stopped = error
        for queue in machine.allSubscribers { queue.end(error) }
        for id in waiting.keys { give(up: id, error) }
        connection?.closeSoon(error)
        whenNeeded?.resume()
        whenNeeded = nil
    }
}

extension RedisClient {
    public func subscribe(to topics: [SubscriptionTopic], buffer: SubscriptionBuffer) async throws(RedisError)
        -> Subscription
    {
        guard buffer.messages >= 1, buffer.bytes >= 1 else {
            throw RedisError(.invalidArgument, "a subscription's buffer holds at least 1 message and 1 byte")
        }
        let subscription = Subscription(queue: SubscriptionQueue(buffer), hub: subscriptions)
        try await subscription.subscribe(to: topics)
        return subscription
    }
}

extension SubscriptionStateMachine.Command {
    fileprivate var encoded: RedisCommand {
        switch self {
        case .ping: ["PING"]
        case .subscribe(let kind, let names): RedisCommand([.string(kind.verb(true))] + names.map { .string($0) })
        case .unsubscribe(let kind, let names): RedisCommand([.string(kind.verb(false))] + names.map { .string($0) })
        }
    }
}

extension SubscriptionTopic.Kind {
    fileprivate func verb(_ subscribe: Bool) -> String {
        switch self {
        case .channel: subscribe ? "SUBSCRIBE" : "UNSUBSCRIBE"
        case .pattern: subscribe ? "PSUBSCRIBE" : "PUNSUBSCRIBE"
        case .shard: subscribe ? "SSUBSCRIBE" : "SUNSUBSCRIBE"
        }
    }
}

extension SubscriptionStateMachine.Event {
    /// Reads `[subscribe, name, count]` and its like, PING's answers, and errors.
    fileprivate init?(_ reply: RESPValue) {
        switch reply {
        case .error(let message): self = .error(message)
        case .status: self = .pong
        case .array(let parts):
            guard let kind = parts.first?.string else { return nil }
            if kind == "pong" {
                self = .pong
                return
            }
            guard parts.count == 3, let name = parts[1].string else { return nil }
            switch kind {
            case "subscribe": self = .confirmed(subscribe: true, .channel(name))
            case "psubscribe": self = .confirmed(subscribe: true, .pattern(name))
            case "ssubscribe": self = .confirmed(subscribe: true, .shard(name))
            case "unsubscribe": self = .confirmed(subscribe: false, .channel(name))
            case "punsubscribe": self = .confirmed(subscribe: false, .pattern(name))
            case "sunsubscribe": self = .confirmed(subscribe: false, .shard(name))
            default: return nil
            }
        default: return nil
        }
    }
}

extension RedisMessage {
    /// Reads `[message, channel, payload]`, `[smessage, …]` and `[pmessage, pattern, channel, payload]`.
    fileprivate init?(_ parts: [RESPValue]) {
        guard case .bytes(let kind) = parts[0], case .bytes(let payload)? = parts.last else { return nil }
        func text(_ index: Int) -> String? {
            guard case .bytes(let bytes) = parts[index] else { return nil }
            return String(decoding: bytes, as: UTF8.self)
        }
        guard let name = text(1) else { return nil }
        // Told apart by their first letters, which spares comparing strings for each message.
        switch (kind.first, kind.count, parts.count) {
        case (UInt8(ascii: "m"), 7, 3): self.init(channel: name, topic: .channel(name), payload: payload)
        case (UInt8(ascii: "s"), 8, 3): self.init(channel: name, topic: .shard(name), payload: payload)
        case (UInt8(ascii: "p"), 8, 4): self.init(channel: text(2) ?? "", topic: .pattern(name), payload: payload)
        default: return nil
        }
    }
}
