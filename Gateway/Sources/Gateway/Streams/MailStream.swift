import NIOConcurrencyHelpers
import NIOPosix
import QueueListen
import ServiceLifecycle

/// An open stream to a client, whatever the transport: it reads the mailbox page by page, and ends when a newer reader
/// begins, the session ends, the node stops, or the client does not read.
///
/// It reads the next page when the last one was written, so that it never holds more than one.
struct MailStream: Sendable {
    /// An event that the transport writes.
    enum Event: Sendable {
        /// Messages, or the report of a loss.
        case delivery(Delivery)
        /// Nothing was written for a while.
        case keepAlive
    }

    /// Why a stream has ended.
    enum End: Sendable {
        case superseded(Cursor)
        case expired
        /// The node stops.
        case restart
    }

    /// The client took nothing for too long.
    struct TooSlow: Error {}

    private enum Signal: Sendable {
        case delivered(Result<Delivery, QueueListenError>)
        case tick
        /// The stream ends: see `Ends`.
        case ended
    }

    let gateway: Gateway
    let session: Session
    let reader: DeviceReader
    private let entry: SessionWatch.Entry?
    /// The time at which the write began that is under way.
    private let writingSince = NIOLockedValueBox<ContinuousClock.Instant?>(nil)
    private let isTooSlow = NIOLockedValueBox(false)

    /// - Parameter entry: made before the session was verified.
    init(_ gateway: Gateway, _ session: Session, _ entry: SessionWatch.Entry?) throws(Problem) {
        self.gateway = gateway
        self.session = session
        self.entry = entry
        reader = try gateway.reader(for: session)
    }

    /// Reads the mailbox until the stream ends.
    ///
    /// - Parameters:
    ///   - cursor: the position after which to read; `nil` continues after the last acknowledged message.
    ///   - stopWriting: must make a write throw that is under way, because the client takes nothing.
    ///   - write: writes an event, and returns when the connection has room again.
    /// - Throws: what `write` throws, `TooSlow`, `Problem`, `CancellationError`.
    func run(
        after cursor: Cursor?, stopWriting: @escaping @Sendable () -> Void, _ write: (Event) async throws -> Void
    ) async throws -> End {
        defer { withExtendedLifetime(entry) {} }
        let (signals, continuation) = AsyncStream<Signal>.makeStream()
        let ends = Ends(signals: continuation)
        let timer = startTimer(ends) { [isTooSlow] in
            isTooSlow.withLockedValue { $0 = true }
            stopWriting()
        }
        defer { timer.stop() }
        do {
            return try await (entry?.signal ?? EndSignal()).whileOpen(onEnd: { ends.end($0) }) {
                try await withGracefulShutdownHandler {
                    try await withThrowingDiscardingTaskGroup { group in
                        defer { group.cancelAll() }
                        if let whileListening = gateway.whileListening {
                            group.addTask { await whileListening(Caller(session)) }
                        }
                        return try await read(signals, ends, after: cursor, &group, write)
                    }
                } onGracefulShutdown: {
                    ends.end(.restart)
                }
            }
        } catch {
            throw isTooSlow.withLockedValue { $0 } ? TooSlow() : error
        }
    }

    private func read(
        _ signals: AsyncStream<Signal>, _ ends: Ends, after start: Cursor?,
        _ group: inout ThrowingDiscardingTaskGroup<any Error>, _ write: (Event) async throws -> Void
    ) async throws -> End {
        var cursor = start
        listen(after: cursor, ends.signals, &group)
        for await signal in signals {
            // A read after the end could make the device known again that a logout has forgotten.
            if let end = ends.first {
                if case .superseded = end { return .superseded(cursor ?? .none) }
                return end
            }
            switch signal {
            case .ended: break
            case .tick:
                try await timed { try await write(.keepAlive) }
                // The publication of a logout or login ends the stream. This is for one that was lost.
                if let end = await gateway.endOfSession(session.id) { ends.end(end) }
            case .delivered(.success(let delivery)):
                if case .superseded = delivery.status {
                    // By a logout, a newer login or a newer reader.
                    let isExpired = await gateway.endOfSession(session.id) == .ended
                    return isExpired ? .expired : .superseded(cursor ?? delivery.cursor)
                }
                if case .timedOut = delivery.status {
                } else {
                    try await timed { try await write(.delivery(delivery)) }
                    cursor = delivery.cursor
                }
                if ends.first == nil { listen(after: cursor, ends.signals, &group) }
            case .delivered(.failure(let error)):
                if error.code == .stopped { return .restart }
                guard error.code == .connectionLost || error.code == .notConnected else { throw Problem(error) }
                listen(after: cursor, ends.signals, &group, pause: .seconds(1))
            }
        }
        throw CancellationError()
    }

    /// Reads the next page in the background.
    private func listen(
        after cursor: Cursor?, _ signals: AsyncStream<Signal>.Continuation,
        _ group: inout ThrowingDiscardingTaskGroup<any Error>,
        pause: Duration = .zero
    ) {
        group.addTask {
            if pause > .zero { try? await Task.sleep(for: pause) }
            let result: Result<Delivery, QueueListenError>
            do throws(QueueListenError) {
                result = .success(
                    try await reader.listen(after: cursor, limit: 1000, maxBytes: GatewayConfiguration.maxPageBytes))
            } catch { result = .failure(error) }
            signals.yield(.delivered(result))
        }
    }

    /// Writes, and notes for how long.
    private func timed(_ write: () async throws -> Void) async throws {
        writingSince.withLockedValue { $0 = .now }
        try await write()
        writingSince.withLockedValue { $0 = nil }
        // The client has begun to read again, but its connection is being closed.
        if isTooSlow.withLockedValue({ $0 }) { throw TooSlow() }
    }

    private func startTimer(_ ends: Ends, tooSlow: @escaping @Sendable () -> Void) -> StreamTimer {
        let now = ContinuousClock.now
        let times = StreamTimes(
            gateway.configuration, expires: now + .milliseconds(session.expires - session.verifiedAt), now: now)
        let eventLoop = ClientConnection.eventLoop ?? MultiThreadedEventLoopGroup.singleton.any()
        return StreamTimer(times, on: eventLoop) { [writingSince] in
            writingSince.withLockedValue { $0 }
        } _: { action in
            switch action {
            case .expire: ends.end(.expired)
            case .closeSlowReader: tooSlow()
            case .keepAlive: ends.signals.yield(.tick)
            }
        }
    }

    /// Why the stream ends: the first reason counts.
    private struct Ends: Sendable {
        let signals: AsyncStream<Signal>.Continuation
        private let box = NIOLockedValueBox<End?>(nil)

        init(signals: AsyncStream<Signal>.Continuation) { self.signals = signals }

        var first: End? { box.withLockedValue { $0 } }

        func end(_ end: End) {
            box.withLockedValue { $0 = $0 ?? end }
            signals.yield(.ended)
        }

        func end(_ end: SessionWatch.End) {
            switch end {
            case .ended: self.end(.expired)
            case .replaced: self.end(.superseded(.none))
            }
        }
    }
}

extension Gateway {
    /// The time in milliseconds after which a client reconnects when this node stops.
    var reconnectTime: Int {
        let longest = configuration.maxReconnectTime
        return Int.random(in: 100...max(100, Int(longest / .milliseconds(1))))
    }
}
