import NIOConcurrencyHelpers
import NIOCore

/// The servers of a cluster: the map of the slots, and a ``Node`` for each master.
///
/// The map is asked for when the client starts, when a server says that it does not serve a slot, when
/// a connection is lost, and every 30 seconds, by one task at a time. A server that serves no slot any
/// more is retired: commands that were not sent go to the new owner of their slot.
final class Cluster: Sendable {
    typealias Endpoint = RedisConfiguration.Endpoint

    /// The statement of a server that another one serves a slot.
    private struct Hint {
        var from: Endpoint
        var to: Endpoint
    }

    private struct State {
        var map: SlotMap?
        /// The map that is about to become valid.
        var nextMap: SlotMap?
        var nodes: [Endpoint: Node] = [:]
        var refresh: Task<RedisError?, Never>?
        /// Why the last refresh failed; `nil` if it succeeded.
        var refreshFailure: RedisError?
        var hints: [Int: Hint] = [:]
        var isStopped = false
    }

    let configuration: RedisConfiguration
    let instruments: Instruments
    let eventLoop: any EventLoop
    let firstCallers = FirstCallers()
    private let seeds: [Endpoint]
    private let transport: Transport
    private let state = NIOLockedValueBox(State())
    private let (newNodes, nodeFeed) = AsyncStream.makeStream(of: Node.self)
    private let anyMaster = MasterSource()
    let subscriptions: ClusterSubscriptions

    init(
        seeds: [Endpoint], _ configuration: RedisConfiguration, eventLoop: any EventLoop
    ) throws(RedisError) {
        self.seeds = seeds
        self.configuration = configuration
        self.eventLoop = eventLoop
        instruments = Instruments(configuration)
        var ofNodes = configuration
        // The cluster counts and traces the commands.
        ofNodes.instruments = configuration.instruments.logOnly
        transport = try Transport(configuration: ofNodes, eventLoop: eventLoop)
        subscriptions = ClusterSubscriptions(transport: transport, anyMaster: anyMaster, instruments: instruments)
    }

    // MARK: Nodes

    static var stopped: RedisError { RedisError(.clientStopped, "the client has stopped") }

    /// Returns the node of a server.
    func node(at endpoint: Endpoint) throws(RedisError) -> Node {
        let result: Result<Node, RedisError> = state.withLockedValue { state in
            if state.isStopped { return .failure(Self.stopped) }
            if let node = state.nodes[endpoint] { return .success(node) }
            let hooks = LinkHooks { [weak self] in
                self?.linkFailed()
            } isServed: { [weak self] in
                self?.isServed($0, by: endpoint) ?? false
            }
            let node = Node(transport.to(endpoint), firstCallers: firstCallers, hooks: hooks)
            state.nodes[endpoint] = node
            nodeFeed.yield(node)
            return .success(node)
        }
        return try result.get()
    }

    /// Returns the node of a slot's master or, without a slot, that of any master; `nil` when the map
    /// does not name it.
    func currentNode(for slot: Int?) throws(RedisError) -> Node? {
        let (isStopped, map, connected) = state.withLockedValue { state in
            (state.isStopped, state.map, slot == nil ? state.nodes : [:])
        }
        if isStopped { throw Self.stopped }
        guard let map else { return nil }
        if let slot { return try map.owner(of: slot).map { endpoint throws(RedisError) in try node(at: endpoint) } }
        let masters = map.masters.shuffled()
        let endpoint = masters.first { connected[$0]?.link.current != nil } ?? masters.first
        return try endpoint.map { endpoint throws(RedisError) in try node(at: endpoint) }
    }

    /// Returns all masters that serve slots now; empty before the first map.
    var masters: Set<Endpoint> { state.withLockedValue { $0.map?.masters ?? [] } }

    private var nodes: [Node] { state.withLockedValue { Array($0.nodes.values) } }

    /// Why there is no connection to a master or no map now; `nil` when nothing of this is known.
    var connectionFailure: RedisError? {
        let (failure, nodes) = state.withLockedValue { ($0.refreshFailure, $0.nodes.values) }
        return failure ?? nodes.lazy.compactMap { $0.link.failure }.first
    }

    var serverVersion: ServerVersion? { nodes.lazy.compactMap { $0.link.serverVersion }.first }

    /// Returns the address of a server as a server has named it. An empty host is the host of the server
    /// that was asked.
    func endpoint(_ host: String, _ port: Int, from asked: Endpoint) -> Endpoint {
        var named = Endpoint.tcp(host: host, port: port)
        if host.isEmpty, case .tcp(let ownHost, _) = asked { named = .tcp(host: ownHost, port: port) }
        return configuration.addressMap[named] ?? named
    }

    // MARK: The map

    /// Notes that a server does not serve a slot, and asks for the map until it says so too.
    func moved(slot: Int, from: Endpoint, to: Endpoint) async {
        let isKnown = state.withLockedValue { state in
            guard state.map?.owner(of: slot) == from else { return true }
            state.hints[slot] = Hint(from: from, to: to)
            return false
        }
        if isKnown { return }
        for _ in 1...2 {
            _ = await refresh()
            // A refresh that had begun before the hint may not have used it.
            if state.withLockedValue({ $0.map?.owner(of: slot) }) != from { return }
        }
    }

    /// Asks for the map. Callers that come meanwhile get the same answer.
    ///
    /// - Returns: the reason why no server has answered, if none has.
    @discardableResult
    func refresh() async -> RedisError? {
        let task = state.withLockedValue { state in
            if let current = state.refresh { return current }
            let task = Task {
                let error = await self.readMap()
                self.state.withLockedValue { ($0.refresh, $0.refreshFailure) = (nil, error) }
                return error
            }
            state.refresh = task
            return task
        }
        return await task.value
    }

    private func readMap() async -> RedisError? {
        let (previous, hints) = state.withLockedValue { ($0.map, $0.hints) }
        var candidates = Array(previous?.masters ?? []).shuffled() + hints.values.map(\.to) + seeds.shuffled()
        var lastError: RedisError?
        while !candidates.isEmpty {
            // Several, because one that was separated from the others has an old map.
            let asked = Array(Set(candidates.prefix(5)))
            candidates.removeFirst(min(5, candidates.count))
            let (answers, error) = await ask(asked)
            lastError = error ?? lastError
            guard !answers.isEmpty else { continue }
            var map = SlotMap(answers, previous: previous)
            for (slot, hint) in hints where map.owner(of: slot) == hint.from { map.move(slot: slot, to: hint.to) }
            state.withLockedValue { state in
                for slot in hints.keys { state.hints[slot] = nil }
            }
            await adopt(map, previous)
            return nil
        }
        return lastError ?? RedisError(.cannotConnect, "no server of the cluster has answered")
    }

    /// Asks servers at the same time, and returns when all have answered or cannot, or a moment after the
    /// first answer.
    private func ask(_ endpoints: [Endpoint]) async -> (answers: [[SlotMap.Master]], error: RedisError?) {
        await withTaskGroup(of: Result<[SlotMap.Master], RedisError>?.self) { group in
            for endpoint in endpoints { group.addTask { await self.ask(endpoint) } }
            var answers: [[SlotMap.Master]] = []
            var lastError: RedisError?
            var missing = endpoints.count
            while missing > 0, let next = await group.next() {
                guard let result = next else { break }
                missing -= 1
                switch result {
                case .failure(let error): lastError = error
                case .success(let answer):
                    answers.append(answer)
                    guard answers.count == 1 else { continue }
                    group.addTask {
                        try? await Task.sleep(for: .milliseconds(100))
                        return nil
                    }
                }
            }
            group.cancelAll()
            return (answers, lastError)
        }
    }

    private func ask(_ endpoint: Endpoint) async -> Result<[SlotMap.Master], RedisError> {
        let open = state.withLockedValue { $0.nodes[endpoint] }?.link.current
        do throws(RedisError) {
            let connection: RedisConnection
            if let open {
                connection = open
            } else {
                let transport = transport.to(endpoint, connectTimeout: .seconds(1))
                connection = try await abandonable { () async throws(RedisError) in
                    try await RedisConnection.connect(transport, role: .command)
                } discard: {
                    $0.closeSoon(Self.stopped)
                }
            }
            defer { if open == nil { connection.closeSoon(Self.stopped) } }
            let reply = try await connection.send(["CLUSTER", "NODES"], timeout: .seconds(1)).get().orThrow("CLUSTER")
            let nodes = reply.string ?? ""
            var preferred = PreferredHosts()
            if PreferredHosts.areNeeded(for: nodes) {
                // An error reply, for example because the right is missing, leaves the addresses as they are.
                let slots = try await connection.send(["CLUSTER", "SLOTS"], timeout: .seconds(1)).get()
                preferred = PreferredHosts(slots: slots)
            }
            let masters = SlotMap.Master.all(in: nodes, preferred: preferred) {
                self.endpoint($0, $1, from: endpoint)
            }
            if masters.allSatisfy(\.slots.isEmpty) {
                throw RedisError(.serverNotReady, "\(endpoint) knows no master with slots")
            }
            return .success(masters)
        } catch {
            return .failure(error)
        }
    }

    /// Makes a map valid. The first scripts reach the new owner of a slot before all other commands.
    private func adopt(_ map: SlotMap, _ previous: SlotMap?) async {
        state.withLockedValue { $0.nextMap = map }
        let changes = if let previous { map.changes(since: previous) } else { [Endpoint: Set<Int>]() }
        for (endpoint, slots) in changes {
            // A connection that is made from now on takes the slots from the next map.
            guard let connection = state.withLockedValue({ $0.nodes[endpoint] })?.link.current else { continue }
            await firstCallers.send(on: connection) { slots.contains($0) }
        }
        anyMaster.update(map.masters)
        let retired = state.withLockedValue { state in
            state.map = map
            state.nextMap = nil
            let retired = state.nodes.filter { !map.masters.contains($0.key) }
            for endpoint in retired.keys { state.nodes[endpoint] = nil }
            return retired.values
        }
        await subscriptions.update(map)
        for node in retired { Task { await node.retire() } }
    }

    // MARK: Run

    func run() async {
        await withDiscardingTaskGroup { group in
            group.addTask { await self.poll() }
            group.addTask { await self.subscriptions.run() }
            group.addTask { for await _ in self.subscriptions.refreshRequests { await self.refresh() } }
            for await node in newNodes { group.addTask { await node.run() } }
        }
    }

    private func poll() async {
        var backoff = Backoff(configuration.reconnectDelay.clamped(to: .zero...(.seconds(1))))
        while !Task.isCancelled {
            if await refresh() == nil {
                backoff.reset()
                try? await Task.sleep(for: .seconds(30) * Double.random(in: 0.75...1))
            } else {
                try? await Task.sleep(for: backoff.next())
            }
        }
    }

    func drain() async {
        await withTaskGroup(of: Void.self) { group in
            for node in nodes { group.addTask { await node.drain() } }
        }
    }

    func stop() async {
        let nodes = state.withLockedValue { state in
            state.isStopped = true
            return state.nodes.values
        }
        nodeFeed.finish()
        for node in nodes { await node.stop() }
        await subscriptions.stop()
    }

    // MARK: Links

    /// A connection was lost or could not be made.
    func linkFailed() { Task { await refresh() } }

    private func isServed(_ slot: Int, by endpoint: Endpoint) -> Bool {
        state.withLockedValue { ($0.nextMap ?? $0.map)?.owner(of: slot) == endpoint }
    }
}
