public import NIOCore
public import NIOPosix

#if ServiceLifecycleSupport
    public import ServiceLifecycle
#endif

/// A client of one Redis server, of the master that sentinels name, or of a cluster: see
/// ``RedisTopology``.
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
/// - All tasks share one command connection for each master, and commands that are sent at the same
///   moment share one write. Each blocking command has a connection of its own, a lane. All
///   subscriptions of the client share one more connection.
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
    /// The servers, which do what the client is asked for.
    let servers: any Servers
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
        servers = try configuration.makeServers(eventLoop: eventLoop)
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
        await service.run(servers.tasks) { await servers.drain() }
        await servers.stop()
    }

    // MARK: Operations

    /// Sends one command and returns its reply: see ``Redis/send(_:timeout:settle:)``.
    public func send(
        _ command: RedisCommand, timeout: Duration?, settle: (@Sendable (RESPValue) -> Void)?
    ) async throws(RedisError) -> RESPValue {
        try await servers.send(command, timeout: timeout, settle: settle)
    }

    /// Sends commands in one write and returns a reply for each: see ``Redis/pipeline(_:timeout:)``.
    public func pipeline(_ commands: [RedisCommand], timeout: Duration?) async throws(RedisError) -> [RESPValue] {
        try await servers.pipeline(commands, timeout: timeout)
    }

    /// Runs commands as one transaction: see ``Redis/transaction(_:timeout:)``.
    public func transaction(_ commands: [RedisCommand], timeout: Duration?) async throws(RedisError) -> [RESPValue] {
        try await servers.transaction(commands, timeout: timeout)
    }

    /// Runs a script by its hash, and loads it first where it is missing: see
    /// ``Redis/script(_:keys:arguments:timeout:)``.
    public func script(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration?
    ) async throws(RedisError) -> RESPValue {
        try await servers.script(script, keys: keys, arguments: arguments, timeout: timeout)
    }

    /// Runs a blocking command on a lane of its own: see ``Redis/block(_:timeout:giveBack:)``.
    public func block(
        _ command: BlockingCommand, timeout: Duration?, giveBack: @escaping @Sendable (RESPValue) async -> Void
    ) async throws(RedisError) -> RESPValue? {
        try await servers.block(command, timeout: timeout, giveBack: giveBack)
    }

    /// Calls `body` with a connection that nobody else uses meanwhile: see
    /// ``Redis/withDedicatedConnection(timeout:_:)``.
    public func withDedicatedConnection<Value>(
        timeout: Duration?, _ body: (DedicatedConnection) async throws -> Value
    ) async throws -> Value {
        try await servers.withDedicatedConnection(timeout: timeout, body)
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

    /// Subscribes to topics, and returns when the server has confirmed each of them: see
    /// ``Redis/subscribe(to:buffer:)``.
    public func subscribe(to topics: [SubscriptionTopic], buffer: SubscriptionBuffer) async throws(RedisError)
        -> Subscription
    {
        try await servers.subscribe(to: topics, buffer: buffer)
    }

    /// The server's version, in a cluster that of one of its servers; `nil` while not connected, and
    /// when the user may not call `INFO`.
    public var serverVersion: ServerVersion? {
        servers.serverVersion
    }
}

#if ServiceLifecycleSupport
    extension RedisClient: Service {}
#endif
