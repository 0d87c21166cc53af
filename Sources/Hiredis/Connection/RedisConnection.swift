import NIOConcurrencyHelpers
import NIOCore
import NIOPosix
import Synchronization

/// One connection whose commands are answered in order: socket, TLS, login, and commands from any
/// thread.
///
/// The actor runs on its event loop. `send` does not enter the actor: commands pass through the
/// outbox, so that a burst from many tasks costs one wake-up of the loop.
actor RedisConnection {
    /// The purpose of a connection.
    enum Role: Sendable {
        /// Carries commands that are answered in order, or the subscriptions.
        case command
        /// Carries one blocking command at a time, so it may be silent for long and must be
        /// interruptible.
        case lane
        /// Carries the commands of one caller, who closes it to interrupt them. Needs no right to
        /// `CLIENT`.
        case dedicated
    }

    /// The information that the client received at login.
    struct Login: Sendable {
        var serverVersion: ServerVersion?
        /// The id for `CLIENT UNBLOCK`; `nil` when the user may not use `CLIENT ID` and `CLIENT
        /// UNBLOCK`.
        var interruptibleID: Int?
    }

    nonisolated let role: Role
    nonisolated let eventLoop: any EventLoop
    nonisolated let unownedExecutor: UnownedSerialExecutor
    /// The server that the connection leads to.
    nonisolated let endpoint: RedisConfiguration.Endpoint
    private nonisolated let outbox: Outbox
    private nonisolated let closing: ClosePromise
    private static let nextID = Atomic<UInt64>(0)

    private nonisolated let handler: NIOLoopBound<ConnectionHandler>
    private nonisolated let learned = NIOLockedValueBox(Login())

    private init(
        role: Role, eventLoop: any EventLoop, endpoint: RedisConfiguration.Endpoint, outbox: Outbox,
        handler: ConnectionHandler, closing: ClosePromise
    ) {
        self.role = role
        self.eventLoop = eventLoop
        self.endpoint = endpoint
        self.outbox = outbox
        self.handler = NIOLoopBound(handler, eventLoop: eventLoop)
        self.closing = closing
        unownedExecutor = eventLoop.executor.asUnownedSerialExecutor()
    }

    nonisolated var login: Login { learned.withLockedValue { $0 } }

    // MARK: Connect

    /// Connects and logs in, where the transport has a source, to the server that it names.
    ///
    /// - Throws: `.cannotConnect`, `.authenticationFailed`, `.unsupportedServer`,
    ///   `.serverNotReady`.
    static func connect(_ transport: Transport, role: Role) async throws(RedisError) -> RedisConnection {
        guard let source = transport.source else { return try await connectAndLogIn(transport, role, false) }
        let endpoint = try await source.endpoint()
        let connection = try await connectAndLogIn(transport.to(endpoint), role, source.requiresMaster)
        try source.watch(connection)
        return connection
    }

    private static func connectAndLogIn(
        _ transport: Transport, _ role: Role, _ requiresMaster: Bool
    ) async throws(RedisError) -> RedisConnection {
        let deadline = NIODeadline.now() + TimeAmount(transport.configuration.connectTimeout)
        let connection = try await open(transport, role, requiresMaster)
        do {
            let steps = LoginSteps(
                configuration: transport.configuration, role: role, mustBeMaster: requiresMaster)
            try await connection.logIn(steps, transport.configuration.endpoint, until: deadline)
            return connection
        } catch {
            connection.closeSoon(error)
            throw error
        }
    }

    private static func open(
        _ transport: Transport, _ role: Role, _ requiresMaster: Bool
    ) async throws(RedisError) -> RedisConnection {
        let silenceLimit = role == .command ? TimeAmount(transport.configuration.silenceLimit) : nil
        let limits = ReplyLimits(transport.configuration.limits)
        return try await transport.connect { channel in
            let outbox = Outbox(maxUnsentBytes: transport.configuration.maxUnsentBytes)
            let closing = ClosePromise()
            let handler = ConnectionHandler(
                eventLoop: channel.eventLoop, outbox: outbox, limits: limits, silenceLimit: silenceLimit,
                leavesReplica: requiresMaster, onClose: { closing.finish($0) })
            try channel.pipeline.syncOperations.addHandler(handler)
            return RedisConnection(
                role: role, eventLoop: channel.eventLoop, endpoint: transport.configuration.endpoint, outbox: outbox,
                handler: handler, closing: closing)
        }
    }

    private func logIn(
        _ steps: LoginSteps, _ endpoint: RedisConfiguration.Endpoint, until deadline: NIODeadline
    ) async throws(RedisError) {
        let reply = await send(pipeline: steps.commands, timeout: deadline - .now())
        switch reply {
        case .success(let value):
            let login = try steps.read(value.array ?? [])
            learned.withLockedValue { $0 = login }
        case .failure(let error):
            throw RedisError(
                .cannotConnect, "the login at \(endpoint) failed: \(error.message)",
                underlying: error.underlying)
        }
    }

    // MARK: Commands, from any thread

    /// Sends one command and returns its reply, which may be an error reply.
    ///
    /// - Parameter settle: receives the reply if it arrives after the caller was cancelled or timed
    ///   out.
    nonisolated func send(
        _ command: RedisCommand, timeout: TimeAmount?, settle: (@Sendable (RESPValue) -> Void)? = nil
    ) async -> Result<RESPValue, RedisError> {
        await send(CollectionOfOne(command), timeout: timeout, settle: settle)
    }

    /// Sends several commands in one write. The reply is an array with one reply for each.
    nonisolated func send(
        pipeline commands: [RedisCommand], timeout: TimeAmount?, settle: (@Sendable (RESPValue) -> Void)? = nil
    ) async -> Result<RESPValue, RedisError> {
        guard commands.count > 1 else {
            guard let command = commands.first else { return .success(.array([])) }
            return await send(command, timeout: timeout).map { .array([$0]) }
        }
        return await send(commands, timeout: timeout, settle: settle)
    }

    private nonisolated func send(
        _ commands: some Collection<RedisCommand> & Sendable, timeout: TimeAmount?,
        settle: (@Sendable (RESPValue) -> Void)?
    ) async -> Result<RESPValue, RedisError> {
        let encodedSize = commands.encodedSize
        let size = encodedSize + commands.count * SendRoom.overhead
        var timeout = timeout
        if !outbox.room.take(size) {
            do { timeout = try await outbox.room.wait(size, timeout: timeout, eventLoop) } catch {
                return .failure(error)
            }
        }
        let id = Self.makeID()
        return await withTaskCancellationHandler { [timeout] in
            await withUnsafeContinuation { continuation in
                let caller = Caller(answer: .resume(continuation), settle: settle)
                submit(
                    Submission(
                        id: id, caller: caller, expectedReplies: commands.count, encodedSize: encodedSize,
                        timeout: timeout, silenceLimit: commands.first?.silenceLimit(timeout)),
                    commands)
                // A cancellation that came before the submission found nothing to cancel.
                if Task.isCancelled { cancel(id) }
            }
        } onCancel: {
            cancel(id)
        }
    }

    /// Sends one command that only `cancel(id)` ends early. Cancellation of the task does not.
    nonisolated func sendUninterrupted(
        _ command: RedisCommand, id: UInt64, settle: @escaping @Sendable (RESPValue) -> Void
    ) async -> Result<RESPValue, RedisError> {
        await withUnsafeContinuation { continuation in
            let caller = Caller(answer: .resume(continuation), settle: settle)
            let submission = Submission(
                id: id, caller: caller, expectedReplies: 1, encodedSize: command.encodedSize, timeout: nil)
            outbox.room.takeAnyway(submission.size)
            submit(submission, CollectionOfOne(command))
        }
    }

    /// Sends one command for a caller on the event loop, and calls `completion` there. It does not
    /// wait for room: its callers limit what they send by themselves.
    nonisolated func post(
        _ command: RedisCommand, timeout: TimeAmount?,
        completion: @escaping @Sendable (Result<RESPValue, RedisError>) -> Void
    ) {
        eventLoop.assertInEventLoop()
        let caller = Caller(answer: .call(completion), settle: nil)
        let submission = Submission(
            id: Self.makeID(), caller: caller, expectedReplies: 1, encodedSize: command.encodedSize, timeout: timeout,
            silenceLimit: command.silenceLimit(timeout))
        outbox.room.takeAnyway(submission.size)
        submit(submission, CollectionOfOne(command))
    }

    nonisolated static func makeID() -> UInt64 { nextID.wrappingAdd(1, ordering: .relaxed).newValue }

    /// Abandons the command. Its reply is still read. No effect if the reply has been delivered.
    nonisolated func cancel(_ id: UInt64) {
        eventLoop.execute { [handler] in handler.value.cancel(id) }
    }

    /// Passes a command to the handler or the outbox. Callers may use unsafe continuations, because
    /// every path through the state machine resumes them exactly once, which the machine's tests
    /// check event by event.
    private nonisolated func submit(_ submission: Submission, _ commands: some Collection<RedisCommand>) {
        if eventLoop.inEventLoop {
            handler.value.submit(submission, commands)
            return
        }
        switch outbox.submit(submission, commands) {
        case .added: break
        case .first: eventLoop.execute { [handler] in handler.value.drainOutbox() }
        case .closed(let error): submission.caller.answer(.failure(error))
        }
    }

    // MARK: Subscriptions

    /// Passes all further replies to `receive` on the event loop instead of to callers. Replies
    /// that arrived together are passed together.
    func redirectReplies(_ receive: @escaping @Sendable ([RESPValue]) -> Void) { handler.value.receive = receive }

    /// Writes commands whose replies go to the function that took over the connection.
    func write(_ commands: [RedisCommand]) { handler.value.write(commands) }

    // MARK: Close

    /// Closes the connection, from any thread.
    nonisolated func closeSoon(_ reason: RedisError) {
        eventLoop.execute { [handler] in handler.value.close(reason) }
    }

    /// Refuses new commands, and closes the connection when all replies have arrived.
    func closeWhenDrained() { handler.value.closeWhenDrained() }

    /// Waits for the end of the connection and returns its reason.
    nonisolated func untilClosed() async -> RedisError { await closing.value() }

    nonisolated var isClosed: Bool { closing.isFinished }

    /// The bytes of commands that wait to be sent.
    nonisolated var unsentBytes: Int { outbox.room.takenBytes }
    /// For tests: the number of callers that wait for room.
    nonisolated var waiterCount: Int { outbox.room.waiterCount }
}

extension ReplyLimits {
    init(_ limits: RedisConfiguration.Limits) {
        self.init(bytes: limits.replyBytes, elements: limits.replyElements, depth: limits.replyDepth)
    }
}
