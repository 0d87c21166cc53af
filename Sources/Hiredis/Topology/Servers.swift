import NIOCore

/// The servers of a client: one server or the master that sentinels name (``Node``), or a cluster
/// (``Cluster``). ``RedisClient`` passes its operations on to them.
protocol Servers: Sendable {
    // MARK: Run

    /// The functions that keep the connections, each until its task is cancelled.
    var tasks: [@Sendable () async -> Void] { get }
    /// Refuses new commands, and returns when those in flight have their replies.
    func drain() async
    /// Fails everything in flight, and closes the connections.
    func stop() async

    // MARK: State

    var serverVersion: ServerVersion? { get }
    /// See ``EventLoopRedis/connectionFailure``.
    var connectionFailure: RedisError? { get }
    /// The scripts that come first on each new command connection.
    var firstCallers: FirstCallers { get }
    func masters() async throws(RedisError) -> [RedisMaster]

    // MARK: Operations of ``Redis`` and ``EventLoopRedis``

    func send(
        _ command: RedisCommand, timeout: Duration?, settle: (@Sendable (RESPValue) -> Void)?
    ) async throws(RedisError) -> RESPValue
    func pipeline(_ commands: [RedisCommand], timeout: Duration?) async throws(RedisError) -> [RESPValue]
    func transaction(_ commands: [RedisCommand], timeout: Duration?) async throws(RedisError) -> [RESPValue]
    func script(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration?
    ) async throws(RedisError) -> RESPValue
    func post(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration?,
        completion: @escaping @Sendable (Result<RESPValue, RedisError>) -> Void
    )
    func block(
        _ command: BlockingCommand, timeout: Duration?, giveBack: @escaping @Sendable (RESPValue) async -> Void
    ) async throws(RedisError) -> RESPValue?
    func withDedicatedConnection<Value>(
        timeout: Duration?, _ body: (DedicatedConnection) async throws -> Value
    ) async throws -> Value
    func subscribe(to topics: [SubscriptionTopic], buffer: SubscriptionBuffer) async throws(RedisError) -> Subscription
}

extension RedisConfiguration {
    /// Makes the servers of a client.
    func makeServers(eventLoop: any EventLoop) throws(RedisError) -> any Servers {
        switch topology {
        case .single: try Node(self, eventLoop: eventLoop)
        case .sentinel(let name, let addresses):
            try Node(
                self, eventLoop: eventLoop,
                source: try SentinelMonitor(
                    name: name, addresses: addresses, self, eventLoop: eventLoop, instruments: Instruments(self)))
        case .cluster(let seeds): try Cluster(seeds: seeds, self, eventLoop: eventLoop)
        }
    }
}

extension Node: Servers {
    var serverVersion: ServerVersion? { link.serverVersion }
    var connectionFailure: RedisError? { link.failure }
    var firstCallers: FirstCallers { link.firstCallers }
    func masters() -> [RedisMaster] { [RedisMaster(self)] }

    func block(
        _ command: BlockingCommand, timeout: Duration?, giveBack: @escaping @Sendable (RESPValue) async -> Void
    ) async throws(RedisError) -> RESPValue? {
        try await block(command, timeout: timeout, asking: false, giveBack: giveBack)
    }
}

extension Cluster: Servers {
    var tasks: [@Sendable () async -> Void] { [run] }

    func masters() async throws(RedisError) -> [RedisMaster] {
        _ = try await node(for: nil, Attempts(deadline: deadline(nil)))
        var found: [RedisMaster] = []
        for endpoint in masters { found.append(RedisMaster(try node(at: endpoint))) }
        return found
    }
}
