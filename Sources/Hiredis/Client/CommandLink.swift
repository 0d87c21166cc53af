import NIOConcurrencyHelpers
import NIOCore

/// Keeps one command connection alive and hands it to callers.
///
/// While there is none, callers wait until their deadline. After a permanent refusal such as a
/// wrong password they fail immediately, and the attempts to connect continue. A command that has
/// certainly not been sent moves to the next connection.
final class CommandLink: Sendable {
    private typealias Waiter = CheckedContinuation<Result<RedisConnection, RedisError>, Never>

    private struct State {
        var connection: RedisConnection?
        /// A connection on which something is sent first, so that no caller has it yet.
        var newConnection: RedisConnection?
        var waiters: [UInt64: Waiter] = [:]
        /// The error of the last attempt. A waiter whose deadline passes receives it as the reason.
        var lastError: RedisError?
        var isRunning = false
        var stopped: RedisError?

        /// Why there is no connection.
        var failure: RedisError? {
            if connection != nil { return nil }
            return lastError
                ?? RedisError(
                    .cannotConnect,
                    isRunning ? "the first attempt to connect has not ended" : "the client's run() is not running")
        }
    }

    private let transport: Transport
    private let instruments: Instruments
    let commandTimeout: TimeAmount
    let firstCallers: FirstCallers
    private let hooks: LinkHooks?
    private let deadlines = DeadlineQueue()
    private let state = NIOLockedValueBox(State())

    init(
        transport: Transport, instruments: Instruments, firstCallers: FirstCallers = FirstCallers(),
        hooks: LinkHooks? = nil
    ) {
        self.firstCallers = firstCallers
        self.hooks = hooks
        self.transport = transport
        self.instruments = instruments
        commandTimeout = TimeAmount(transport.configuration.commandTimeout)
    }

    // MARK: Send

    /// The connection, if there is one now.
    var current: RedisConnection? { state.withLockedValue { $0.connection } }

    /// Why there is no connection now; `nil` when there is one.
    var failure: RedisError? { state.withLockedValue { $0.failure } }

    /// Carries out `operation` on a connection, and again on the next one if the connection ended
    /// before the command was sent.
    func withConnection(
        timeout: Duration?, failed: RedisConnection? = nil,
        _ operation: (RedisConnection, TimeAmount) async -> Result<RESPValue, RedisError>
    ) async throws(RedisError) -> RESPValue {
        let timeout = timeout.map { TimeAmount($0) } ?? commandTimeout
        var failed = failed
        var remaining = timeout
        var deadline: NIODeadline?
        while true {
            let connection: RedisConnection
            if failed == nil, let current = state.withLockedValue({ $0.connection }) {
                connection = current
            } else {
                let end = deadline ?? .now() + timeout
                deadline = end
                connection = try await wait(until: end, failed: failed)
                remaining = end - .now()
            }
            switch await operation(connection, remaining) {
            case .success(let reply):
                return reply
            case .failure(let error):
                guard Self.wasNotSent(error, on: connection) else { throw error }
                failed = connection
            }
        }
    }

    /// Whether the connection ended before the command was sent, so that it may be sent on the next
    /// one.
    static func wasNotSent(_ error: RedisError, on connection: RedisConnection) -> Bool {
        !error.mayHaveRun && error.code != .cancelled && error.code != .timedOut
            && (connection.isClosed || error.code == .connectionLost)
    }

    private func wait(until deadline: NIODeadline, failed: RedisConnection?) async throws(RedisError) -> RedisConnection
    {
        let id = RedisConnection.makeID()
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                deadlines.add(id, at: deadline, on: transport.eventLoop) { self.timeOut(id) }
                let now: Result<RedisConnection, RedisError>? = state.withLockedValue { state in
                    if let error = state.stopped { return .failure(error) }
                    if Task.isCancelled { return .failure(Self.cancelled) }
                    if let current = state.connection, current !== failed { return .success(current) }
                    // The deadline may have passed before there was a waiter.
                    if NIODeadline.now() >= deadline { return .failure(Self.timedOut(state)) }
                    state.waiters[id] = continuation
                    return nil
                }
                if let now {
                    deadlines.cancel(id)
                    continuation.resume(returning: now)
                }
            }
        } onCancel: {
            finish(id, .failure(Self.cancelled))
        }
        return try result.get()
    }

    private static var cancelled: RedisError { RedisError(.cancelled, "the task was cancelled") }

    private func timeOut(_ id: UInt64) {
        finish(id, .failure(state.withLockedValue { Self.timedOut($0) }))
    }

    private static func timedOut(_ state: State) -> RedisError {
        let reason = state.failure.map { ": \($0.message)" } ?? ""
        return RedisError(.timedOut, "no connection within the deadline\(reason)", underlying: state.lastError)
    }

    private func finish(_ id: UInt64, _ result: Result<RedisConnection, RedisError>) {
        guard let waiter = state.withLockedValue({ $0.waiters.removeValue(forKey: id) }) else { return }
        deadlines.cancel(id)
        waiter.resume(returning: result)
    }

    private func finish(_ waiters: [UInt64: Waiter], _ result: Result<RedisConnection, RedisError>) {
        for (id, waiter) in waiters {
            deadlines.cancel(id)
            waiter.resume(returning: result)
        }
    }

    // MARK: Run

    /// Connects, and reconnects after each break, until the task is cancelled or the link is
    /// stopped.
    func run() async {
        state.withLockedValue { $0.isRunning = true }
        await Reconnecting(transport, instruments, name: "command").run {
            self.state.withLockedValue { $0.stopped != nil }
        } connect: { () async throws(RedisError) in
            try await RedisConnection.connect(self.transport, role: .command)
        } serve: { connection in
            guard self.begin(connection) else { return connection.closeSoon(Self.stopped) }
            let reason = await withTaskCancellationHandler {
                await self.firstCallers.send(on: connection) { self.hooks?.isServed($0) ?? true }
                self.established(connection)
                return await connection.untilClosed()
            } onCancel: {
                connection.closeSoon(Self.stopped)
            }
            self.lost(connection, reason)
        } failed: { error in
            self.failed(error)
        }
    }

    private static var stopped: RedisError { RedisError(.clientStopped, "the client has stopped") }

    /// - Returns: false if the link has been stopped.
    private func begin(_ connection: RedisConnection) -> Bool {
        state.withLockedValue { state in
            if state.stopped == nil { state.newConnection = connection }
            return state.stopped == nil
        }
    }

    /// Hands a connection to the callers. `stop` closes it before or afterwards.
    private func established(_ connection: RedisConnection) {
        let waiters = state.withLockedValue { state -> [UInt64: Waiter] in
            state.newConnection = nil
            if state.stopped != nil { return [:] }
            defer { state.waiters = [:] }
            state.connection = connection
            state.lastError = nil
            return state.waiters
        }
        finish(waiters, .success(connection))
    }

    private func lost(_ connection: RedisConnection, _ reason: RedisError) {
        state.withLockedValue { state in
            if state.connection === connection { state.connection = nil }
            state.lastError = reason
        }
        hooks?.failed()
    }

    private func failed(_ error: RedisError) {
        defer { hooks?.failed() }
        let waiters = state.withLockedValue { state in
            state.lastError = error
            guard error.isPermanent else { return [UInt64: Waiter]() }
            defer { state.waiters = [:] }
            return state.waiters
        }
        finish(waiters, .failure(error))
    }

    // MARK: Stop

    /// Refuses new commands. With `draining` it returns when the commands in flight have their
    /// replies; otherwise it closes the connection.
    func stop(
        draining: Bool, _ error: RedisError = RedisError(.clientStopped, "the client has stopped")
    ) async {
        let (connection, newConnection, waiters) = state.withLockedValue { state in
            state.stopped = state.stopped ?? error
            defer { (state.waiters, state.newConnection) = ([:], nil) }
            return (state.connection, state.newConnection, state.waiters)
        }
        finish(waiters, .failure(error))
        newConnection?.closeSoon(error)
        guard let connection else { return }
        if draining {
            await connection.closeWhenDrained()
            _ = await connection.untilClosed()
        } else {
            connection.closeSoon(error)
        }
    }

    var serverVersion: ServerVersion? {
        state.withLockedValue { $0.connection }?.login.serverVersion
    }
}

/// The functions by which a link to one server of a cluster reports to the cluster, and asks it.
struct LinkHooks: Sendable {
    /// Called when the connection has ended, or could not be made.
    var failed: @Sendable () -> Void
    /// Whether the server serves a slot.
    var isServed: @Sendable (Int) -> Bool
}
