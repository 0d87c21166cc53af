// A connection handler on a test channel: the test acts as the server and controls the clock.
import NIOCore
import NIOEmbedded
import TestSupport

@testable import Hiredis
@testable import HiredisTestSupport

/// The result of a command that may still be in flight.
typealias PendingReply = Task<Result<RESPValue, RedisError>, Never>

/// Returns a caller for one submission, and its future result.
func makeCaller(settle: (@Sendable (RESPValue) -> Void)? = nil) async -> (Caller, PendingReply) {
    let (callers, feed) = AsyncStream.makeStream(of: Caller.self)
    let reply = Task {
        await withUnsafeContinuation { feed.yield(Caller(answer: .resume($0), settle: settle)) }
    }
    var iterator = callers.makeAsyncIterator()
    return (await iterator.next()!, reply)
}

final class TestedConnection: Sendable {
    enum Origin {
        /// A task on the event loop.
        case loop
        /// A task on another thread. The event loop receives its command from the outbox in `takeOutbox()`.
        case elsewhere
    }

    let loop: NIOAsyncTestingEventLoop
    let channel: NIOAsyncTestingChannel
    let outbox = Outbox()
    private let handler: NIOLoopBound<ConnectionHandler>
    private let wire: NIOLoopBound<WireRecorder>

    init(
        silenceLimit: TimeAmount? = .seconds(30), limits: ReplyLimits = ReplyLimits(),
        leavesReplica: Bool = false, wire behaviour: WireRecorder.Behaviour = .ordinary
    ) async throws {
        loop = NIOAsyncTestingEventLoop()
        channel = NIOAsyncTestingChannel(loop: loop)
        let (channel, outbox, loop) = (channel, outbox, loop)
        let (ended, closings) = AsyncStream.makeStream(of: RedisError.self)
        (handler, wire) = try await loop.executeInContext {
            let wire = WireRecorder(behaviour)
            let handler = ConnectionHandler(
                eventLoop: loop, outbox: outbox, limits: limits, silenceLimit: silenceLimit,
                leavesReplica: leavesReplica, onClose: { closings.yield($0) })
            try channel.pipeline.syncOperations.addHandlers([wire, handler])
            return (NIOLoopBound(handler, eventLoop: loop), NIOLoopBound(wire, eventLoop: loop))
        }
        self.ended = ended
        try await channel.connect(to: SocketAddress(unixDomainSocketPath: "/nowhere"))
    }

    /// The reasons with which `onClose` was called.
    let ended: AsyncStream<RedisError>

    func onLoop<Value: Sendable>(_ body: @escaping @Sendable (ConnectionHandler) throws -> Value) async throws -> Value
    {
        let handler = handler
        return try await loop.executeInContext { try body(handler.value) }
    }

    // MARK: Caller

    func submit(
        _ commands: RedisCommand..., id: UInt64 = RedisConnection.makeID(), timeout: TimeAmount? = nil,
        from origin: Origin = .elsewhere, settle: (@Sendable (RESPValue) -> Void)? = nil
    ) async throws -> PendingReply {
        let (caller, reply) = await makeCaller(settle: settle)
        let submission = Submission(id: id, caller: caller, for: commands, timeout: timeout)
        switch origin {
        case .loop: try await onLoop { $0.submit(submission, commands) }
        case .elsewhere:
            if case .closed(let error) = outbox.submit(submission, commands) {
                caller.answer(.failure(error))
            }
        }
        return reply
    }

    func takeOutbox() async throws { try await onLoop { $0.drainOutbox() } }

    /// Submits a command and sends it.
    func send(
        _ commands: RedisCommand..., id: UInt64 = RedisConnection.makeID(), timeout: TimeAmount? = nil,
        silenceLimit: TimeAmount? = nil, settle: (@Sendable (RESPValue) -> Void)? = nil
    ) async throws -> PendingReply {
        let (caller, reply) = await makeCaller(settle: settle)
        var submission = Submission(id: id, caller: caller, for: commands, timeout: timeout)
        submission.silenceLimit = silenceLimit
        _ = outbox.submit(submission, commands)
        try await takeOutbox()
        return reply
    }

    // MARK: Server

    /// Returns the commands that arrived since the last call.
    func arrived() async throws -> [RESPValue] {
        var pieces: [[UInt8]] = []
        while let buffer = try await channel.readOutbound(as: ByteBuffer.self) {
            pieces.append(Array(buffer.readableBytesView))
        }
        return try decode(pieces)
    }

    func answer(_ values: RESPValue...) async throws { try await answer(bytes: values.flatMap(\.wire)) }

    func answer(bytes: some Sequence<UInt8>) async throws {
        // The channel may close during the read.
        try await channel.writeInbound(ByteBuffer(bytes: bytes))
    }

    func setWritable(_ isWritable: Bool) async throws {
        channel.isWritable = isWritable
        let channel = channel
        try await loop.executeInContext { channel.pipeline.fireChannelWritabilityChanged() }
    }

    var flushes: Int {
        get async throws {
            let wire = wire
            return try await loop.executeInContext { wire.value.flushes }
        }
    }

    /// Completes a slow close.
    func finishClosing() async throws {
        let wire = wire
        try await loop.executeInContext { wire.value.finishClosing() }
    }

    func isOpen() async throws -> Bool {
        let channel = channel
        return try await loop.executeInContext { channel.isActive }
    }
}

/// A handler that counts flushes and can inject faults.
final class WireRecorder: ChannelOutboundHandler {
    typealias OutboundIn = ByteBuffer

    enum Behaviour {
        case ordinary
        /// The connection breaks during a write.
        case breaksOnFlush
        /// A close is asynchronous, as with TLS, and completes when the test calls `finishClosing()`.
        case closesSlowly
    }

    private let behaviour: Behaviour
    private var whenClosed: (() -> Void)?
    private(set) var flushes = 0

    init(_ behaviour: Behaviour) { self.behaviour = behaviour }

    func flush(context: ChannelHandlerContext) {
        flushes += 1
        context.flush()
        if behaviour == .breaksOnFlush { context.close(promise: nil) }
    }

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        guard behaviour == .closesSlowly else {
            context.close(mode: mode, promise: promise)
            return
        }
        whenClosed = whenClosed ?? { context.close(mode: mode, promise: promise) }
    }

    func finishClosing() { whenClosed?() }
}

extension Result<RESPValue, RedisError> {
    var value: RESPValue? { try? get() }

    var error: RedisError? {
        if case .failure(let error) = self { error } else { nil }
    }
}

extension Submission {
    init(id: UInt64, caller: Caller, for commands: [RedisCommand], timeout: TimeAmount? = nil) {
        self.init(
            id: id, caller: caller, expectedReplies: commands.count, encodedSize: commands.encodedSize, timeout: timeout
        )
    }
}
