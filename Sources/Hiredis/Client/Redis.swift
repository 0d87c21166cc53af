// What the layers above need of a Redis.

/// The operations that coordination and mailboxes are built on: commands, pipelines, scripts, blocking commands,
/// publish and subscribe.
///
/// `RedisClient` is the real one. Code written against this protocol can be tested against a scripted fake.
public protocol Redis: Sendable {
    /// Sends one command and returns its reply.
    ///
    /// The command may share its connection with others and is sent at once. When the task is cancelled or the deadline
    /// passes, the call throws and the connection goes on: the reply is read when it comes.
    ///
    /// - Parameters:
    ///   - timeout: from now, the wait for a connection included; `nil` is the configured `commandTimeout`.
    ///   - settle: gets a reply that comes after the caller has given up, so that what it brought (an element that was
    ///     popped) can be put back. Runs on the event loop: it must not block.
    /// - Throws: `RedisError`: the server's error reply, or why there is no reply; `mayHaveRun` tells whether the
    ///   command may have taken effect. Nothing is sent twice, except a command that certainly was not sent.
    func send(
        _ command: RedisCommand, timeout: Duration?, settle: (@Sendable (RESPValue) -> Void)?
    ) async throws(RedisError) -> RESPValue

    /// Sends commands in one write and returns a reply for each, error replies in their places.
    func pipeline(_ commands: [RedisCommand], timeout: Duration?) async throws(RedisError) -> [RESPValue]

    /// Calls `body` with a connection that nobody else uses meanwhile, for commands that depend on their connection or
    /// keep it busy. `WAIT`, for example, counts what was written on its own connection.
    ///
    /// The connection returns to the pool when `body` returns. It is closed when `body` throws, when a command on it
    /// fails without a reply, when the task is cancelled and when the timeout passes; commands in flight on it then fail.
    ///
    /// - Parameters:
    ///   - timeout: how long `body` may use the connection, from the moment it is connected; `nil` is the configured
    ///     `commandTimeout`.
    /// - Throws: `.tooManyLanes`, `.cannotConnect`, `.clientStopped`, `.cancelled`; and what `body` throws.
    func withDedicatedConnection<Value>(
        timeout: Duration?, _ body: (DedicatedConnection) async throws -> Value
    ) async throws -> Value

    /// Runs commands as one transaction (`MULTI`, `EXEC`): all or none are run, with nothing in between.
    ///
    /// - Throws: `RedisError` when the server refused one of them; then none has run.
    func transaction(_ commands: [RedisCommand], timeout: Duration?) async throws(RedisError) -> [RESPValue]

    /// Runs a script by its hash, and loads it into the server first where it is missing.
    func script(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration?
    ) async throws(RedisError) -> RESPValue

    /// Runs a blocking command on a lane of its own.
    ///
    /// - Parameters:
    ///   - timeout: how long to wait, precise to about a millisecond; `nil` waits for ever.
    ///   - giveBack: undoes a reply that came although the caller had been cancelled or its time was up, and retries
    ///     until it has. It runs outside the cancelled task.
    /// - Returns: the reply, or `nil` when the time was up.
    /// - Throws: `.cancelled` (then nothing was taken, or it was given back), `.connectionLost` (what the server took for
    ///   this call may be lost), `.tooManyLanes`.
    func block(
        _ command: BlockingCommand, timeout: Duration?, giveBack: @escaping @Sendable (RESPValue) async -> Void
    ) async throws(RedisError) -> RESPValue?

    /// Sends a message to all who listen on the channel, and returns how many they are.
    func publish(_ payload: RedisArgument, to channel: SubscriptionTopic) async throws(RedisError) -> Int

    /// Listens. Returns when the server has confirmed every topic.
    func subscribe(to topics: [SubscriptionTopic], buffer: SubscriptionBuffer) async throws(RedisError) -> Subscription
}

extension Redis {
    public func send(_ command: RedisCommand, timeout: Duration? = nil) async throws(RedisError) -> RESPValue {
        try await send(command, timeout: timeout, settle: nil)
    }

    /// `try await redis.send("SET", "key", "value")`
    public func send(_ arguments: RedisArgument...) async throws(RedisError) -> RESPValue {
        try await send(RedisCommand(arguments), timeout: nil, settle: nil)
    }

    public func pipeline(_ commands: [RedisCommand]) async throws(RedisError) -> [RESPValue] {
        try await pipeline(commands, timeout: nil)
    }

    /// Calls `body` with a connection that nobody else uses meanwhile, for at most the configured `commandTimeout`.
    public func withDedicatedConnection<Value>(
        _ body: (DedicatedConnection) async throws -> Value
    ) async throws -> Value {
        try await withDedicatedConnection(timeout: nil, body)
    }

    public func transaction(_ commands: [RedisCommand]) async throws(RedisError) -> [RESPValue] {
        try await transaction(commands, timeout: nil)
    }

    public func script(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument] = []
    ) async throws(RedisError) -> RESPValue {
        try await self.script(script, keys: keys, arguments: arguments, timeout: nil)
    }

    /// Calls `body` with the messages on these topics, and unsubscribes when it returns or throws.
    ///
    /// ```swift
    /// try await redis.withSubscription(to: ["news", .pattern("match:*")]) { events in
    ///     for try await event in events { … }
    /// }
    /// ```
    ///
    /// The server has confirmed every topic when `body` begins: what is published from then on arrives.
    public func withSubscription<Result>(
        to topics: [SubscriptionTopic], buffer: SubscriptionBuffer = .default,
        _ body: (Subscription) async throws -> Result
    ) async throws -> Result {
        let subscription = try await subscribe(to: topics, buffer: buffer)
        defer { subscription.cancel() }
        return try await body(subscription)
    }

    public func subscribe(to topics: [SubscriptionTopic]) async throws(RedisError) -> Subscription {
        try await subscribe(to: topics, buffer: .default)
    }
}
