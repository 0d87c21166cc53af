// One connection that answers commands in order: socket, TLS, login, and the way in for commands from any thread.
import NIOCore
import NIOPosix
import NIOSSL
import NIOConcurrencyHelpers
import Synchronization

/// An actor on its event loop's executor. `send` does not enter it: commands go through the outbox, so that a burst from
/// many tasks costs one wake-up of the loop.
actor RedisConnection {
    /// What a connection is for.
    enum Role: Sendable {
        /// Answers commands in order, or carries the subscriptions.
        case command
        /// Carries one blocking command at a time, so it may be silent for long and must be able to be interrupted.
        case lane
    }

    /// What the server told at login.
    struct Login: Sendable {
        var serverVersion: ServerVersion?
        /// The id to interrupt this connection by; `nil` when the user may not use `CLIENT ID` and `CLIENT UNBLOCK`.
        var interruptibleID: Int?
    }

    nonisolated let eventLoop: any EventLoop
    nonisolated let unownedExecutor: UnownedSerialExecutor
    private nonisolated let outbox: Outbox
    private nonisolated let closing: ClosePromise
    private static let nextID = Atomic<UInt64>(0)

    private nonisolated let handler: NIOLoopBound<ConnectionHandler>
    private nonisolated let learned = NIOLockedValueBox(Login())

    private init(eventLoop: any EventLoop, outbox: Outbox, handler: ConnectionHandler, closing: ClosePromise) {
        self.eventLoop = eventLoop
        self.outbox = outbox
        self.handler = NIOLoopBound(handler, eventLoop: eventLoop)
        self.closing = closing
        unownedExecutor = eventLoop.executor.asUnownedSerialExecutor()
    }

    nonisolated var login: Login { learned.withLockedValue { $0 } }

    // MARK: Connect

    /// Connects and logs in.
    ///
    /// - Throws: `.cannotConnect`, `.authenticationFailed`, `.unsupportedServer`, `.serverNotReady`.
    static func connect(_ transport: Transport, role: Role) async throws(RedisError) -> RedisConnection {
        let deadline = NIODeadline.now() + TimeAmount(transport.configuration.connectTimeout)
        let connection = try await open(transport, role: role)
        do {
            try await connection.logIn(transport.configuration, role: role, until: deadline)
            return connection
        } catch {
            connection.closeSoon(error)
            throw error
        }
    }

    private static func open(_ transport: Transport, role: Role) async throws(RedisError) -> RedisConnection {
        let silenceLimit = role == .lane ? nil : TimeAmount(transport.configuration.silenceLimit)
        let limits = ReplyLimits(transport.configuration.limits)
        return try await transport.connect { channel in
            let outbox = Outbox()
            let closing = ClosePromise()
            let handler = ConnectionHandler(
                eventLoop: channel.eventLoop, outbox: outbox, limits: limits, silenceLimit: silenceLimit,
                onClose: { closing.finish($0) })
            try channel.pipeline.syncOperations.addHandler(handler)
            return RedisConnection(eventLoop: channel.eventLoop, outbox: outbox, handler: handler, closing: closing)
        }
    }

    private func logIn(
        _ configuration: RedisConfiguration, role: Role, until deadline: NIODeadline
    ) async throws(RedisError) {
        let steps = LoginSteps(configuration: configuration, role: role)
        let reply = await send(pipeline: steps.commands, timeout: deadline - .now())
        switch reply {
        case .success(let value):
            let login = try steps.read(value.array ?? [])
            learned.withLockedValue { $0 = login }
        case .failure(let error):
            throw RedisError(
                .cannotConnect, "no login at \(configuration.endpoint): \(error.message)", underlying: error.underlying)
        }
    }

    // MARK: Commands, from any thread

    /// Sends one command and returns its reply, an error reply included.
    ///
    /// - Parameter settle: gets the reply when it comes after the caller has given up (cancel or timeout).
    nonisolated func send(
        _ command: RedisCommand, timeout: TimeAmount?, settle: (@Sendable (RESPValue) -> Void)? = nil
    ) async -> Result<RESPValue, RedisError> {
        let id = Self.makeID()
        return await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let caller = Caller(answer: .resume(continuation), settle: settle)
                submit(Submission(id: id, caller: caller, expectedReplies: 1, timeout: timeout)) {
                    $0.writeCommand(command)
                }
                // A cancel that came before the submission has found nothing to cancel.
                if Task.isCancelled { cancel(id) }
            }
        } onCancel: {
            cancel(id)
        }
    }

    /// Sends several commands in one piece; the reply is an array with one reply for each.
    nonisolated func send(pipeline commands: [RedisCommand], timeout: TimeAmount?) async -> Result<
        RESPValue, RedisError
    > {
        guard commands.count > 1 else {
            guard let command = commands.first else { return .success(.array([])) }
            return await send(command, timeout: timeout).map { .array([$0]) }
        }
        let id = Self.makeID()
        return await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let caller = Caller(answer: .resume(continuation), settle: nil)
                submit(Submission(id: id, caller: caller, expectedReplies: commands.count, timeout: timeout)) {
                    buffer in
                    for command in commands { buffer.writeCommand(command) }
                }
                if Task.isCancelled { cancel(id) }
            }
        } onCancel: {
            cancel(id)
        }
    }

    /// Sends one command that the caller interrupts itself, through `cancel(id)`: a cancelled task goes on waiting.
    nonisolated func sendUninterrupted(
        _ command: RedisCommand, id: UInt64, settle: @escaping @Sendable (RESPValue) -> Void
    ) async -> Result<RESPValue, RedisError> {
        await withUnsafeContinuation { continuation in
            let caller = Caller(answer: .resume(continuation), settle: settle)
            submit(Submission(id: id, caller: caller, expectedReplies: 1, timeout: nil)) { $0.writeCommand(command) }
        }
    }

    /// Sends one command for a caller on the event loop, who is called back there.
    nonisolated func post(
        _ command: RedisCommand, timeout: TimeAmount?,
        completion: @escaping @Sendable (Result<RESPValue, RedisError>) -> Void
    ) {
        let caller = Caller(answer: .call(completion), settle: nil)
        submit(Submission(id: Self.makeID(), caller: caller, expectedReplies: 1, timeout: timeout)) {
            $0.writeCommand(command)
        }
    }

    nonisolated static func makeID() -> UInt64 { nextID.wrappingAdd(1, ordering: .relaxed).newValue }

    /// Gives the command up; its reply will still be read. No effect if the reply has been delivered.
    nonisolated func cancel(_ id: UInt64) {
        eventLoop.execute { [handler] in handler.value.cancel(id) }
    }

    /// The continuation is an unsafe one: every path through the machine resumes exactly once, which its tests check
    /// event by event.
    private nonisolated func submit(_ submission: Submission, encode: (inout ByteBuffer) -> Void) {
        if eventLoop.inEventLoop {
            handler.value.submit(submission, encode: encode)
            return
        }
        switch outbox.submit(submission, encode: encode) {
        case .added: break
        case .first: eventLoop.execute { [handler] in handler.value.drainOutbox() }
        case .closed(let error): submission.caller.answer(.failure(error))
        }
    }

    // MARK: Subscriptions

    /// From now on replies answer no commands: they are pushed, as many as came at once, on the event loop.
    func takeOver(_ receive: @escaping @Sendable ([RESPValue]) -> Void) { handler.value.receive = receive }

    /// Writes commands whose answers are pushed.
    func write(_ commands: [RedisCommand]) { handler.value.write(commands) }

    // MARK: Close

    /// Closes from wherever the caller is.
    nonisolated func closeSoon(_ reason: RedisError) {
        eventLoop.execute { [handler] in handler.value.close(reason) }
    }

    func closeWhenDrained() { handler.value.closeWhenDrained() }

    /// Waits for the end of the connection and returns its reason.
    nonisolated func untilClosed() async -> RedisError { await closing.value() }

    nonisolated var isClosed: Bool { closing.isFinished }
}

/// The end of a connection, to be awaited by anyone, at any time.
final class ClosePromise: Sendable {
    private struct State {
        var reason: RedisError?
        var waiters: [CheckedContinuation<RedisError, Never>] = []
    }
    private let state = NIOLockedValueBox(State())

    var isFinished: Bool { state.withLockedValue { $0.reason != nil } }

    func finish(_ reason: RedisError) {
        let waiters = state.withLockedValue { state in
            state.reason = state.reason ?? reason
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume(returning: reason) }
    }

    func value() async -> RedisError {
        await withCheckedContinuation { continuation in
            let reason = state.withLockedValue { state in
                if state.reason == nil { state.waiters.append(continuation) }
                return state.reason
            }
            if let reason { continuation.resume(returning: reason) }
        }
    }
}

extension ReplyLimits {
    init(_ limits: RedisConfiguration.Limits) {
        self.init(bytes: limits.replyBytes, elements: limits.replyElements, depth: limits.replyDepth)
    }
}
