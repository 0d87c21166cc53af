public import NIOCore
public import NIOPosix

#if ServiceLifecycleSupport
    public import ServiceLifecycle
#endif

/// A client of a Redis server, or of the master that sentinels name: see ``RedisTopology``.
///
/// ```swift
/// try await withRedisClient(url: "redis://127.0.0.1:6379") { redis in
///     try await redis.send("SET", "greeting", "hello")
///     print(try await redis.send("GET", "greeting"))
/// }
/// ```
///
/// In a server process, make one client and run it with the other services. `run()` owns all
/// background work:
///
/// ```swift
/// let redis = try RedisClient(url: "redis://127.0.0.1:6379")
/// let services = ServiceGroup(services: [redis, server], logger: logger)
/// try await services.run()
/// ```
///
/// - All tasks share one command connection, and commands that are sent at the same moment share
///   one write. Each blocking command has a connection of its own, a lane. All subscriptions of the
///   client share one more connection.
/// - When a connection breaks, the client reconnects until it stops, with growing pauses. Commands
///   that were certainly not sent wait for the connection until their deadline. Commands in flight
///   fail with an error that says whether they may have run. A command that was sent is not sent
///   again.
/// - Cancelling a task ends its call immediately and does not affect other calls.
/// - When the process dies, the server closes its connections. Commands that were sent are still
///   carried out; blocking commands are removed from their queues.
public final class RedisClient: Redis {
    /// The configuration that the client was made with.
    public let configuration: RedisConfiguration
    let instruments: Instruments
    let lanes: LanePool
    let subscriptions: SubscriptionHub
    let link: CommandLink
    private let sentinels: SentinelMonitor?
    let eventLoop: any EventLoop
    private let service = ServiceRun("RedisClient")

    /// A task executor on the event loop of this client's connections.
    ///
    /// A task that exchanges many messages with the server saves a thread switch for each of them
    /// when it runs on this executor:
    ///
    /// ```swift
    /// await withTaskExecutorPreference(redis.executor) { … }
    /// ```
    ///
    /// Such a task must not block its thread, because all connections of the client wait meanwhile.
    public let executor: any TaskExecutor

    /// Makes a client. It connects when ``run()`` is called.
    ///
    /// - Parameter eventLoopGroup: one of its loops carries all connections of this client.
    /// - Throws: `.invalidArgument` for a configuration out of range, or TLS files that cannot be
    ///   read.
    public init(
        _ configuration: RedisConfiguration,
        eventLoopGroup: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton
    ) throws(RedisError) {
        try configuration.validate()
        self.configuration = configuration
        eventLoop = eventLoopGroup.next()
        executor = LoopExecutor(eventLoop)
        instruments = Instruments(configuration)
        sentinels =
            switch configuration.topology {
            case .single: nil
            case .sentinel(let name, let addresses):
                try SentinelMonitor(
                    name: name, addresses: addresses, configuration, eventLoop: eventLoop, instruments: instruments)
            }
        let transport = try Transport(configuration: configuration, eventLoop: eventLoop, sentinels: sentinels)
        link = CommandLink(transport: transport, instruments: instruments)
        lanes = LanePool(transport: transport, instruments: instruments)
        subscriptions = SubscriptionHub(transport: transport, instruments: instruments)
    }

    /// Makes a client of the server at a URL. It connects when ``run()`` is called.
    ///
    /// - Parameter url: see ``RedisConfiguration/init(url:)``.
    /// - Throws: `.invalidArgument` for a URL that cannot be used.
    public convenience init(url: String) throws(RedisError) {
        try self.init(RedisConfiguration(url: url))
    }

    // MARK: Run

    /// Makes and keeps the connections until the task is cancelled or a graceful shutdown begins.
    /// Call it once: a second call traps.
    ///
    /// On graceful shutdown new commands are refused with `.clientStopped`, and commands in flight
    /// receive their replies before the connections close. When the task is cancelled, everything
    /// in flight fails.
    public func run() async {
        let tasks = [link.run, subscriptions.run, lanes.run] + (sentinels.map { [$0.run] } ?? [])
        await service.run(tasks) {
            // Lanes first: elements that interrupted waits have taken are given back on the command connection.
            await lanes.stop(settling: true)
            await link.stop(draining: true)
        }
        await stop()
    }

    /// Makes and keeps the connections until the task is cancelled. A part of another client uses it
    /// instead of ``run()``, which reacts to a graceful shutdown as well.
    func runConnections() async {
        await withTaskGroup(of: Void.self) { group in
            for task in [link.run, subscriptions.run, lanes.run] { group.addTask { await task() } }
        }
        await stop()
    }

    private func stop() async {
        await lanes.stop(settling: false)
        await link.stop(draining: false)
        await subscriptions.stop()
    }

    // MARK: Commands

    /// Sends one command and returns its reply: see ``Redis/send(_:timeout:settle:)``.
    public func send(
        _ command: RedisCommand, timeout: Duration?, settle: (@Sendable (RESPValue) -> Void)?
    ) async throws(RedisError) -> RESPValue {
        if instruments.isDisabled { return try await exchange(command, timeout: timeout, settle: settle) }
        return try await instruments.measure(command.name) { () async throws(RedisError) in
            try await exchange(command, timeout: timeout, settle: settle)
        }
    }

    /// Sends commands in one write and returns a reply for each: see ``Redis/pipeline(_:timeout:)``.
    public func pipeline(_ commands: [RedisCommand], timeout: Duration?) async throws(RedisError) -> [RESPValue] {
        try await instruments.measure("PIPELINE", size: commands.count) { () async throws(RedisError) in
            try await exchange(pipeline: commands, timeout: timeout)
        }
    }

    /// Runs commands as one transaction: see ``Redis/transaction(_:timeout:)``.
    public func transaction(_ commands: [RedisCommand], timeout: Duration?) async throws(RedisError) -> [RESPValue] {
        try await instruments.measure("MULTI", size: commands.count) { () async throws(RedisError) in
            let replies = try await exchange(pipeline: [["MULTI"]] + commands + [["EXEC"]], timeout: timeout)
            // A command that could not be queued fails the whole transaction; its own error says more than EXECABORT.
            for (command, reply) in zip(commands, replies.dropFirst()) { _ = try reply.orThrow(command.name) }
            guard let results = try replies.last?.orThrow("EXEC").array else {
                throw RedisError(
                    .unexpectedReply, "EXEC did not return an array", mayHaveRun: true, command: "EXEC")
            }
            return results
        }
    }

    /// Publishes a message and returns the number of subscribers that receive it: see
    /// ``Redis/publish(_:to:)``.
    public func publish(_ payload: RedisArgument, to channel: SubscriptionTopic) async throws(RedisError) -> Int {
        let name: RedisArgument
        switch channel.kind {
        case .channel: name = "PUBLISH"
        case .shard: name = "SPUBLISH"
        case .pattern: throw RedisError(.invalidArgument, "a message is published to a channel, not to a pattern")
        }
        let reply = try await send([name, .string(channel.name), payload])
        guard let count = reply.integer else { throw RedisError(.unexpectedReply, "PUBLISH did not return a number") }
        return count
    }

    /// Sends one command without counting or tracing it, for operations that consist of several
    /// exchanges.
    func exchange(
        _ command: RedisCommand, timeout: Duration?, settle: (@Sendable (RESPValue) -> Void)? = nil
    ) async throws(RedisError) -> RESPValue {
        if Task.isCancelled { throw RedisError(.cancelled, "the task was cancelled", command: command.name) }
        do throws(RedisError) {
            // Almost every command takes this path, which avoids the frames and closures of the general path below.
            var failed: RedisConnection?
            if let connection = link.current {
                let amount = timeout.map { TimeAmount($0) } ?? link.commandTimeout
                switch await connection.send(command, timeout: amount, settle: settle) {
                case .success(let reply): return try reply.orThrow()
                case .failure(let error):
                    guard CommandLink.wasNotSent(error, on: connection) else { throw error }
                    failed = connection
                }
            }
            return try await link.withConnection(timeout: timeout, failed: failed) { connection, remaining in
                await connection.send(command, timeout: remaining, settle: settle)
            }.orThrow()
        } catch {
            throw error.naming(command.name)
        }
    }

    private func exchange(pipeline commands: [RedisCommand], timeout: Duration?) async throws(RedisError) -> [RESPValue]
    {
        let reply = try await link.withConnection(timeout: timeout) { connection, remaining in
            await connection.send(pipeline: commands, timeout: remaining)
        }
        return reply.array ?? []
    }

    /// The server's version; `nil` while not connected, and when the user may not call `INFO`.
    public var serverVersion: ServerVersion? { link.serverVersion }
}

#if ServiceLifecycleSupport
    extension RedisClient: Service {}
#endif
