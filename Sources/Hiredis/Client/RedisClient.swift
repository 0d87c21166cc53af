// The client: one command connection shared by all tasks, lanes for blocking commands, one subscription connection.
public import NIOCore
public import NIOPosix

#if ServiceLifecycleSupport
    public import ServiceLifecycle
#endif

/// A client of one Redis.
///
/// ```swift
/// try await withRedisClient(url: "redis://127.0.0.1:6379") { redis in
///     try await redis.send("SET", "greeting", "hello")
///     print(try await redis.send("GET", "greeting"))
/// }
/// ```
///
/// In a server, make one and run it with the other services; `run()` owns all background work:
///
/// ```swift
/// let redis = try RedisClient(url: "redis://127.0.0.1:6379")
/// let services = ServiceGroup(services: [redis, server], logger: logger)
/// try await services.run()
/// ```
///
/// - All tasks share one command connection; what they send in one moment travels in one write. Blocking commands have
///   connections of their own ("lanes"). All subscriptions of the client share one more.
/// - When a connection breaks it is made anew, for ever, with growing pauses. Commands that certainly were not sent wait
///   for it until their deadline; those under way fail with an error that says whether they may have run. Nothing that
///   was sent is sent again.
/// - Cancelling a task ends its call at once and costs nobody else anything.
/// - When the process dies, the server closes its connections: commands that were sent are still carried out, blocked
///   ones are taken out of their queues.
public final class RedisClient: Redis {
    public let configuration: RedisConfiguration
    let instruments: Instruments
    let lanes: LanePool
    let subscriptions: SubscriptionHub
    let link: CommandLink
    let eventLoop: any EventLoop
    private let service = ServiceRun("RedisClient")

    /// A task executor on the event loop of this client's connections.
    ///
    /// A task that exchanges many messages with the server saves a thread hand-over for each when it lives there:
    ///
    /// ```swift
    /// await withTaskExecutorPreference(redis.executor) { … }
    /// ```
    ///
    /// It must never block its thread: all of the client's connections wait meanwhile.
    public let executor: any TaskExecutor

    /// - Parameter eventLoopGroup: one loop of it will carry all connections of this client.
    /// - Throws: `RedisError.Code.invalidArgument` for a configuration out of range, or TLS files that cannot be read.
    public init(
        _ configuration: RedisConfiguration,
        eventLoopGroup: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton
    ) throws(RedisError) {
        try configuration.validate()
        self.configuration = configuration
        eventLoop = eventLoopGroup.next()
        executor = LoopExecutor(eventLoop)
        instruments = Instruments(configuration)
        let transport = try Transport(configuration: configuration, eventLoop: eventLoop)
        link = CommandLink(transport: transport, instruments: instruments)
        lanes = LanePool(transport: transport, instruments: instruments)
        subscriptions = SubscriptionHub(transport: transport, instruments: instruments)
    }

    /// - Parameter url: see ``RedisConfiguration/init(url:)``.
    public convenience init(url: String) throws(RedisError) {
        try self.init(RedisConfiguration(url: url))
    }

    // MARK: Run

    /// Makes and keeps the connections, until the task is cancelled or a graceful shutdown begins. Call it once.
    ///
    /// On graceful shutdown new commands are refused with `.clientStopped` and those under way are answered before the
    /// connections close. When the task is cancelled, everything under way fails.
    public func run() async {
        await service.run([link.run, subscriptions.run, lanes.run]) {
            // In this order: what interrupted waits have taken is given back through the command connection.
            await lanes.stop(settling: true)
            await link.stop(draining: true)
        }
        await lanes.stop(settling: false)
        await link.stop(draining: false)
        await subscriptions.stop()
    }

    // MARK: Commands

    public func send(
        _ command: RedisCommand, timeout: Duration?, settle: (@Sendable (RESPValue) -> Void)?
    ) async throws(RedisError) -> RESPValue {
        if instruments.isDisabled { return try await exchange(command, timeout: timeout, settle: settle) }
        return try await instruments.measure(command.name) { () async throws(RedisError) in
            try await exchange(command, timeout: timeout, settle: settle)
        }
    }

    public func pipeline(_ commands: [RedisCommand], timeout: Duration?) async throws(RedisError) -> [RESPValue] {
        try await instruments.measure("PIPELINE", size: commands.count) { () async throws(RedisError) in
            try await exchange(pipeline: commands, timeout: timeout)
        }
    }

    public func transaction(_ commands: [RedisCommand], timeout: Duration?) async throws(RedisError) -> [RESPValue] {
        try await instruments.measure("MULTI", size: commands.count) { () async throws(RedisError) in
            let replies = try await exchange(pipeline: [["MULTI"]] + commands + [["EXEC"]], timeout: timeout)
            // A command that could not be queued fails the whole; its own error says more than EXECABORT.
            for (command, reply) in zip(commands, replies.dropFirst()) { _ = try reply.orThrow(command.name) }
            guard let results = try replies.last?.orThrow("EXEC").array else {
                throw RedisError(
                    .unexpectedReply, "EXEC did not return an array", mayHaveRun: true, command: "EXEC")
            }
            return results
        }
    }

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

    /// One exchange, not counted or traced: for operations that are made of several.
    func exchange(
        _ command: RedisCommand, timeout: Duration?, settle: (@Sendable (RESPValue) -> Void)? = nil
    ) async throws(RedisError) -> RESPValue {
        if Task.isCancelled { throw RedisError(.cancelled, "the task was cancelled", command: command.name) }
        do throws(RedisError) {
            // The way that almost every command goes, without the frames and closures of the general one.
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

    /// The server's version, when connected and the user may call `INFO`.
    public var serverVersion: ServerVersion? { link.serverVersion }
}

#if ServiceLifecycleSupport
    extension RedisClient: Service {}
#endif

/// Makes a client, runs it while `body` runs, and closes it. For scripts, tools and tests.
///
/// When the task is cancelled, the client goes on until `body` has ended: what a cancelled wait has taken can still be
/// given back.
@discardableResult
public func withRedisClient<Result>(
    _ configuration: RedisConfiguration,
    _ body: (RedisClient) async throws -> Result
) async throws -> Result {
    let client = try RedisClient(configuration)
    return try await whileRunning({ await client.run() }, { try await body(client) })
}

/// - Parameter url: see ``RedisConfiguration/init(url:)``.
@discardableResult
public func withRedisClient<Result>(
    url: String, _ body: (RedisClient) async throws -> Result
) async throws -> Result {
    try await withRedisClient(RedisConfiguration(url: url), body)
}
