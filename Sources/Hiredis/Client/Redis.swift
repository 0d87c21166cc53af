/// The operations of a Redis client: commands, pipelines, transactions, scripts, blocking commands,
/// publish and subscribe.
///
/// ``RedisClient`` is the implementation. Code written against this protocol can be tested with a
/// fake.
///
/// Every operation throws ``RedisError``. Cancelling the task ends a call with `.cancelled`.
public protocol Redis: Sendable {
    /// Sends one command and returns its reply.
    ///
    /// The command may share its connection with others and is sent immediately. When the task is
    /// cancelled or the timeout passes, the call throws and the connection stays open: the reply is
    /// read when it arrives.
    ///
    /// - Parameters:
    ///   - timeout: from now, including the wait for a connection; `nil` is the configured
    ///     `commandTimeout`.
    ///   - settle: receives a reply that arrives after the call has thrown, so that a value that
    ///     the command took (for example a popped element) can be put back. It runs on the event
    ///     loop and must not block.
    /// - Throws: the server's error reply, or `.timedOut`, `.cancelled`, `.connectionLost`,
    ///   `.clientStopped` or another code if there is no reply. ``RedisError/mayHaveRun`` says
    ///   whether the command may have taken effect. A command that the server may have received is
    ///   never sent again.
    func send(
        _ command: RedisCommand, timeout: Duration?, settle: (@Sendable (RESPValue) -> Void)?
    ) async throws(RedisError) -> RESPValue

    /// Sends commands in one write and returns a reply for each, with error replies in their
    /// places.
    ///
    /// - Parameter timeout: for all of them, from now; `nil` is the configured `commandTimeout`.
    /// - Throws: what ``send(_:timeout:settle:)`` throws, except error replies, which are among the
    ///   returned replies.
    func pipeline(_ commands: [RedisCommand], timeout: Duration?) async throws(RedisError) -> [RESPValue]

    /// Calls `body` with a connection that nobody else uses meanwhile, for commands that depend on
    /// their connection or keep it busy. `WAIT`, for example, counts what was written on its own
    /// connection.
    ///
    /// The connection returns to the pool when `body` returns. It is closed when `body` throws,
    /// when a command on it fails without a reply, when the task is cancelled and when the timeout
    /// passes; commands in flight on it then fail.
    ///
    /// - Parameters:
    ///   - timeout: how long `body` may use the connection, from the moment it is connected; `nil`
    ///     is the configured `commandTimeout`.
    /// - Throws: `.tooManyLanes`, `.cannotConnect`, `.clientStopped`, `.cancelled`; and what `body`
    ///   throws.
    func withDedicatedConnection<Value>(
        timeout: Duration?, _ body: (DedicatedConnection) async throws -> Value
    ) async throws -> Value

    /// Runs commands as one transaction (`MULTI`, `EXEC`): all or none of them run, with no other
    /// command in between.
    ///
    /// - Returns: a reply for each command.
    /// - Throws: the server's error when it refused one of the commands, in which case none has
    ///   run; otherwise what ``send(_:timeout:settle:)`` throws.
    func transaction(_ commands: [RedisCommand], timeout: Duration?) async throws(RedisError) -> [RESPValue]

    /// Runs a script by its hash, and loads it into the server first if it is missing there.
    ///
    /// - Parameters:
    ///   - keys: every key that the script touches.
    ///   - timeout: for each exchange with the server; `nil` is the configured `commandTimeout`.
    /// - Throws: as ``send(_:timeout:settle:)`` does, but never `.noScript`.
    func script(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration?
    ) async throws(RedisError) -> RESPValue

    /// Runs a blocking command on a lane of its own: a connection that carries one caller's
    /// commands at a time.
    ///
    /// - Parameters:
    ///   - timeout: how long to wait, precise to about a millisecond; `nil` waits without a limit.
    ///   - giveBack: puts back what the command took, when its reply arrives although the caller
    ///     was cancelled or timed out. It must retry until it succeeds, and runs outside the
    ///     cancelled task.
    /// - Returns: the reply, or `nil` when the time is up.
    /// - Throws: `.cancelled`, `.connectionLost`, `.tooManyLanes`, `.clientStopped`, and the
    ///   server's error reply. After `.cancelled`, nothing was taken, or it was given back. If
    ///   ``RedisError/mayHaveRun`` is set, the server did not answer in time, and what it may have
    ///   taken is given back when it answers. After `.connectionLost`, what the server took for
    ///   this call may be lost.
    func block(
        _ command: BlockingCommand, timeout: Duration?, giveBack: @escaping @Sendable (RESPValue) async -> Void
    ) async throws(RedisError) -> RESPValue?

    /// Publishes a message and returns the number of subscribers that receive it.
    ///
    /// - Parameter channel: a channel or a sharded channel, not a pattern.
    func publish(_ payload: RedisArgument, to channel: SubscriptionTopic) async throws(RedisError) -> Int

    /// Subscribes to topics, and returns when the server has confirmed each of them.
    ///
    /// - Throws: `.notPermitted` (an ACL rule forbids a channel), `.timedOut` (not confirmed within
    ///   the configured `commandTimeout`), `.cancelled`, `.clientStopped`, `.invalidArgument`.
    ///   After an error, none of the topics is subscribed.
    func subscribe(
        to topics: [SubscriptionTopic], buffer: SubscriptionBuffer
    ) async throws(RedisError) -> Subscription
}

extension Redis {
    /// Sends one command and returns its reply.
    ///
    /// - Parameter timeout: from now, including the wait for a connection; `nil` is the configured
    ///   `commandTimeout`.
    @discardableResult
    public func send(_ command: RedisCommand, timeout: Duration? = nil) async throws(RedisError) -> RESPValue {
        try await send(command, timeout: timeout, settle: nil)
    }

    /// Sends one command and returns its reply: `try await redis.send("SET", "key", "value")`.
    @discardableResult
    public func send(_ arguments: RedisArgument...) async throws(RedisError) -> RESPValue {
        try await send(RedisCommand(arguments), timeout: nil, settle: nil)
    }

    /// Sends commands in one write and returns a reply for each, with error replies in their
    /// places.
    public func pipeline(_ commands: [RedisCommand]) async throws(RedisError) -> [RESPValue] {
        try await pipeline(commands, timeout: nil)
    }

    /// Calls `body` with a connection that nobody else uses meanwhile, for at most the configured
    /// `commandTimeout`.
    public func withDedicatedConnection<Value>(
        _ body: (DedicatedConnection) async throws -> Value
    ) async throws -> Value {
        try await withDedicatedConnection(timeout: nil, body)
    }

    /// Runs commands as one transaction: all or none of them run, with no other command in between.
    public func transaction(_ commands: [RedisCommand]) async throws(RedisError) -> [RESPValue] {
        try await transaction(commands, timeout: nil)
    }

    /// Runs a script by its hash, and loads it into the server first if it is missing there.
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
    /// The server has confirmed every topic when `body` begins, so that every message published
    /// from then on arrives.
    ///
    /// - Throws: what ``subscribe(to:buffer:)`` throws, and what `body` throws.
    public func withSubscription<Result>(
        to topics: [SubscriptionTopic], buffer: SubscriptionBuffer = .default,
        _ body: (Subscription) async throws -> Result
    ) async throws -> Result {
        let subscription = try await subscribe(to: topics, buffer: buffer)
        defer { subscription.cancel() }
        return try await body(subscription)
    }

    /// Subscribes to topics with the default buffer, and returns when the server has confirmed each
    /// of them.
    public func subscribe(to topics: [SubscriptionTopic]) async throws(RedisError) -> Subscription {
        try await subscribe(to: topics, buffer: .default)
    }
}
