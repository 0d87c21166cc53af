/// Follows a mailbox across connections, nodes and transports: the iterator of ``GatewayMessages``.
final class MailFollower {
    private enum Transport { case events, poll }

    private let client: GatewayClient
    private let configuration: GatewayClientConfiguration
    private let clock = ContinuousClock()
    /// The position after the last event that was delivered.
    private var cursor: String?
    private var duplicates = Duplicates()
    private var transport: Transport
    private var connection: (any MailConnection)?
    private var node = ""
    /// The deliveries of the connection that were not returned yet, the next one last.
    private var items: [MailItem] = []
    private var isFinished = false

    /// Whether the connection has delivered anything.
    private var isOpen = false
    private var openedAt: ContinuousClock.Instant?
    /// The number of connections in a row that delivered no event.
    private var failures = 0
    /// The number of connections in a row that did not open, with this transport.
    private var refusals = 0
    /// The delay that the server has named.
    private var retry: Duration?
    /// While polling: the time at which to try server-sent events again.
    private var eventsAgain: ContinuousClock.Instant?
    /// The number of times at which server-sent events were tried again.
    private var upgrades = 0

    init(_ client: GatewayClient, after cursor: String?) {
        self.client = client
        self.cursor = cursor
        configuration = client.configuration
        transport = configuration.transport == .poll ? .poll : .events
    }

    /// Returns the next event; `nil` after the last one.
    func next() async throws(GatewayError) -> GatewayEvent? {
        while !isFinished {
            do throws(GatewayError) {
                if Task.isCancelled { throw GatewayError(.cancelled, "the task was cancelled") }
                if let event = try await step() { return event }
            } catch {
                close()
                client.note(error)
                guard Self.connectsAgain(after: error) else {
                    isFinished = true
                    throw error
                }
                try await pause(after: error)
            }
        }
        return nil
    }

    /// Whether the failure is one of the connection, and not of the session or the reader.
    private static func connectsAgain(after error: GatewayError) -> Bool {
        error.isTransient
            || [.unexpectedReply, .stale, .nonceUsed, GatewayError.Code("not-acceptable")].contains(error.code)
    }

    /// Connects, reads or returns an event.
    private func step() async throws(GatewayError) -> GatewayEvent? {
        if let item = items.popLast() { return try await take(item) }
        if let eventsAgain, clock.now >= eventsAgain {
            close()
            (transport, self.eventsAgain, refusals) = (.events, nil, 0)
        }
        guard let connection else {
            node = client.nodes.current
            isOpen = false
            switch transport {
            case .events: self.connection = try await EventStream(client, after: cursor, at: node)
            case .poll: self.connection = PollReader(client, after: cursor, at: node)
            }
            return nil
        }
        guard let more = try await connection.next() else {
            throw GatewayError(.network, "the stream has ended")
        }
        items = more.reversed()
        return nil
    }

    private func take(_ item: MailItem) async throws(GatewayError) -> GatewayEvent? {
        switch item {
        case .opened: opened()
        case .retry(let delay): retry = delay
        case .position(let position): moved(to: position)
        case .message(let message):
            moved(to: message.cursor)
            if duplicates.insert(message) { return .message(message) }
        case .gap(let gap):
            moved(to: gap.cursor)
            return .gap(gap)
        case .superseded:
            close()
            isFinished = true
            return .superseded
        case .bye(let delay):
            // The node is stopping, and has chosen a random time for each client.
            close()
            client.nodes.leave(node)
            try await sleep(delay)
        }
        return nil
    }

    private func moved(to position: String) {
        cursor = position
        failures = 0
    }

    private func opened() {
        guard !isOpen else { return }
        isOpen = true
        openedAt = clock.now
        refusals = 0
        if transport == .events { upgrades = 0 }
    }

    private func close() {
        connection = nil
        items = []
    }

    // MARK: Failures

    /// Goes on to the next node or transport, and waits.
    private func pause(after error: GatewayError) async throws(GatewayError) {
        if isOpen, let openedAt, clock.now - openedAt > configuration.maxDelay { failures = 0 }
        let backoff = Backoff(
            configuration: configuration, nodes: client.nodes.count, random: client.environment.random)
        let delay = backoff.delay(failures: failures, retry: retry, retryAfter: error.retryAfter)
        failures += 1
        // The limit of requests is one for all nodes.
        if error.code != .tooManyRequests {
            client.nodes.leave(node)
            if !isOpen { changeTransportIfRefused() }
        }
        isOpen = false
        try await sleep(delay)
    }

    /// Something on the way, such as a proxy, may not pass this transport: when it was refused at each node, the other
    /// one is tried.
    private func changeTransportIfRefused() {
        refusals += 1
        guard configuration.transport == .automatic, refusals % client.nodes.count == 0 else { return }
        refusals = 0
        if transport == .events {
            transport = .poll
            eventsAgain = clock.now + configuration.eventsAgain * (1 << upgrades)
            upgrades = min(upgrades + 1, 5)
        } else {
            (transport, eventsAgain) = (.events, nil)
        }
    }

    private func sleep(_ delay: Duration) async throws(GatewayError) {
        do { try await client.environment.sleep(delay) } catch {
            isFinished = true
            throw GatewayError(.cancelled, "the task was cancelled")
        }
    }
}
