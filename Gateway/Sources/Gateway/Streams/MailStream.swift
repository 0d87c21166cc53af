import Hiredis
import NIOConcurrencyHelpers
import NIOCore
import QueueListen
import ServiceLifecycle

/// An open stream to a client, whatever the transport: it reads the mailbox page by page, and ends when a newer reader
/// begins, the session ends, the node stops, or the client does not read.
///
/// It reads the next page when the last one was written, so that it never holds more than one. One task reads and writes;
/// everything else happens on the event loop of the connection, because each further task would need several kilobytes.
final class MailStream: Sendable {
    /// Why a stream has ended.
    enum End: Sendable {
        case superseded(Cursor)
        case expired
        /// The node stops.
        case restart
    }

    /// The client took nothing for too long.
    struct TooSlow: Error {}

    /// What a stream does with its connection besides writing deliveries to it.
    struct Connection: Sendable {
        let eventLoop: any EventLoop
        /// Writes a sign of life between the writes of deliveries, and returns when it has left. Called on the event loop.
        /// `nil` if only the stream's task can write: it then does, but must interrupt its reading for that.
        let keepAlive: (@Sendable () -> EventLoopFuture<Void>)?
        /// Makes a write fail that is under way, because the client takes nothing.
        let stopWriting: @Sendable () -> Void
    }

    private struct State: Sendable {
        /// Why the stream ends: the first reason counts.
        var end: End?
        var isTooSlow = false
        /// When the current write of a delivery began; `nil` if there is none.
        var deliveringSince: StreamTimes.Instant?
        /// When the current write of a keep-alive began; `nil` if there is none.
        var keepingAliveSince: StreamTimes.Instant?

        var writingSince: StreamTimes.Instant? {
            guard let deliveringSince, let keepingAliveSince else { return deliveringSince ?? keepingAliveSince }
            return min(deliveringSince, keepingAliveSince)
        }
    }

    private let gateway: Gateway
    private let session: Session
    private let reader: DeviceReader
    private let entry: SessionWatch.Entry?
    private let state = NIOLockedValueBox(State())

    /// - Parameter entry: made before the session was verified.
    init(_ gateway: Gateway, _ session: Session, _ entry: SessionWatch.Entry?) throws {
        self.gateway = gateway
        self.session = session
        self.entry = entry
        reader = try gateway.reader(for: session)
    }

    /// Makes ``run(after:on:_:)`` throw: immediately while it reads, and after the write while it writes.
    func cancel() { reader.cancel() }

    /// Reads the mailbox until the stream ends.
    ///
    /// - Parameters:
    ///   - cursor: the position after which to read; `nil` continues after the last acknowledged message.
    ///   - write: writes messages, or the report of a loss; for `nil` a sign of life. Returns when the connection has room
    ///     again.
    /// - Throws: what `write` throws, `TooSlow`, `QueueListenError`, `CancellationError`.
    func run(
        after cursor: Cursor?, on connection: Connection, _ write: (Delivery?) async throws -> Void
    ) async throws -> End {
        let timeout = connection.keepAlive == nil ? gateway.configuration.keepAliveInterval : nil
        let timer = startTimer(connection)
        defer { timer.stop() }
        do {
            return try await (entry?.signal ?? EndSignal()).whileOpen(onEnd: { self.end($0) }) {
                try await withGracefulShutdownHandler {
                    try await readBesideListening(after: cursor, timeout, write)
                } onGracefulShutdown: {
                    self.end(.restart)
                }
            }
        } catch {
            throw state.withLockedValue { $0.isTooSlow } ? TooSlow() : error
        }
    }

    /// Reads the mailbox, beside the application's function.
    private func readBesideListening(
        after cursor: Cursor?, _ timeout: Duration?, _ write: (Delivery?) async throws -> Void
    ) async throws -> End {
        guard let whileListening = gateway.whileListening else { return try await read(after: cursor, timeout, write) }
        return try await withThrowingDiscardingTaskGroup { group in
            defer { group.cancelAll() }
            group.addTask { await whileListening(Caller(self.session)) }
            return try await read(after: cursor, timeout, write)
        }
    }

    private func read(
        after start: Cursor?, _ timeout: Duration?, _ write: (Delivery?) async throws -> Void
    ) async throws -> End {
        var cursor = start
        while true {
            let delivery = try await next(after: cursor, timeout, write)
            if let end = state.withLockedValue({ $0.end }) {
                if case .superseded = end { return .superseded(cursor ?? .none) }
                return end
            }
            guard let delivery else { throw CancellationError() }
            switch delivery.status {
            case .superseded:
                // By a logout, a newer login or a newer reader.
                let isExpired = await gateway.endOfSession(session.id) == .ended
                return isExpired ? .expired : .superseded(cursor ?? delivery.cursor)
            case .timedOut: try await timed { try await write(nil) }
            case .messages, .reset, .forked, .truncated:
                try await timed { try await write(delivery) }
                cursor = delivery.cursor
            }
        }
    }

    /// Returns the next delivery, also when Redis is away meanwhile; `nil` if the reading was cancelled, or the node stops.
    private func next(
        after cursor: Cursor?, _ timeout: Duration?, _ write: (Delivery?) async throws -> Void
    ) async throws -> Delivery? {
        while true {
            do throws(QueueListenError) {
                return try await reader.listen(
                    after: cursor, limit: 1000, maxBytes: GatewayConfiguration.maxPageBytes, timeout: timeout)
            } catch {
                switch error.code {
                case .cancelled: return nil
                case .stopped:
                    end(.restart)
                    return nil
                case .connectionLost, .notConnected: break
                case .unknownDevice:
                    if try await registerAgain() { continue }
                    if state.withLockedValue({ $0.end != nil }) { return nil }
                default: throw error
                }
            }
            try await Task.sleep(for: .seconds(1))
            if timeout != nil { try await timed { try await write(nil) } }
        }
    }

    /// Makes the device known again, or ends the stream if the session has ended.
    ///
    /// - Returns: whether the device is known.
    private func registerAgain() async throws -> Bool {
        do {
            try await gateway.sessions.check(session.id)
            _ = try await gateway.register(reader, of: session)
            return true
        } catch let problem as Problem {
            guard let end = SessionWatch.End(problem) else { throw problem }
            self.end(end)
        } catch let error as RedisError where error.isTransient {
        } catch let error as QueueListenError where error.code == .connectionLost || error.code == .notConnected {
        }
        return false
    }

    /// Writes, and notes for how long.
    private func timed(_ write: () async throws -> Void) async throws {
        state.withLockedValue { $0.deliveringSince = .now }
        try await write()
        let isTooSlow = state.withLockedValue { state in
            state.deliveringSince = nil
            return state.isTooSlow
        }
        // The client has begun to read again, but its connection is being closed.
        if isTooSlow { throw TooSlow() }
    }

    // MARK: Times

    private func startTimer(_ connection: Connection) -> StreamTimer {
        let now = ContinuousClock.now
        let times = StreamTimes(gateway.configuration, expires: session.end, now: now)
        return StreamTimer(times, on: connection.eventLoop) {
            self.state.withLockedValue { $0.writingSince }
        } _: { action in
            switch action {
            case .expire: self.end(.expired)
            case .closeSlowReader:
                self.state.withLockedValue { $0.isTooSlow = true }
                connection.stopWriting()
                self.reader.cancel()
            case .keepAlive: self.keepAlive(connection)
            }
        }
    }

    private func keepAlive(_ connection: Connection) {
        if let keepAlive = connection.keepAlive {
            state.withLockedValue { $0.keepingAliveSince = .now }
            keepAlive().whenComplete { _ in
                self.state.withLockedValue { $0.keepingAliveSince = nil }
            }
        }
        // The publication of a logout or login ends the stream. This is for one that was lost.
        Task { if let end = await gateway.endOfSession(session.id) { self.end(end) } }
    }

    // MARK: Ends

    /// Ends the stream, after the write that is under way.
    private func end(_ end: End) {
        state.withLockedValue { $0.end = $0.end ?? end }
        reader.cancel()
    }

    private func end(_ end: SessionWatch.End) {
        switch end {
        case .ended: self.end(.expired)
        case .replaced: self.end(.superseded(.none))
        }
    }
}

extension GatewayConfiguration {
    /// The time in milliseconds after which a client reconnects when this node stops.
    var reconnectTime: Int { Int.random(in: 100...max(100, Int(maxReconnectTime / .milliseconds(1)))) }
}
