import NIOCore

/// Runs a `ConnectionStateMachine` on a NIO channel: it decodes bytes into replies, writes batches
/// of commands, and tells the machine when deadlines pass.
final class ConnectionHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let eventLoop: any EventLoop
    private let decoder: ReplyDecoder
    private let outbox: Outbox
    /// The time after which a server that owes a reply and sends nothing is suspected to be dead. `nil`
    /// on a lane, where a command may block.
    private let silenceLimit: TimeAmount?
    /// Whether to close the connection when the server refuses a write because it is a replica.
    private let leavesReplica: Bool
    private let onClose: @Sendable (RedisError) -> Void

    private var machine = ConnectionStateMachine<Caller>()
    private var context: ChannelHandlerContext?
    private var unwritten = ByteBuffer()
    /// Large commands that are not written, and what was before each of them.
    private var unwrittenPieces: [ByteBuffer] = []
    /// The number of bytes that the unwritten commands occupy in the outbox's ``SendRoom``.
    private var unwrittenSize = 0
    private var timer: (deadline: NIODeadline, scheduled: Scheduled<Void>)?
    private var closeReason: RedisError?
    private var isClosed = false
    private var isFlushScheduled = false
    /// Whether the server has refused a write because it is a replica.
    private var isDemoted = false
    /// Receives all replies of a connection that carries subscriptions. They do not answer
    /// commands.
    var receive: (([RESPValue]) -> Void)?

    init(
        eventLoop: any EventLoop, outbox: Outbox, limits: ReplyLimits, silenceLimit: TimeAmount?,
        leavesReplica: Bool = false, onClose: @escaping @Sendable (RedisError) -> Void
    ) {
        self.eventLoop = eventLoop
        self.outbox = outbox
        self.silenceLimit = silenceLimit
        self.leavesReplica = leavesReplica
        self.onClose = onClose
        decoder = ReplyDecoder(limits: limits)
    }

    // MARK: From the caller's side, on the event loop

    /// Accepts a command from a task on this event loop. It is written immediately when no other
    /// command is in flight. Otherwise it is written together with other commands of this turn of
    /// the loop: as soon as they are a fair share of all commands in flight, or when the turn ends.
    func submit(_ submission: Submission, _ commands: some Collection<RedisCommand>) {
        let isAlone = machine.isIdle
        guard let deadline = enqueue(submission, now: eventLoop.now) else { return }
        unwritten.write(commands, size: submission.encodedSize)
        arm(deadline)
        if isAlone || machine.hasShare {
            writeWhatIsLeft()
            return
        }
        guard !isFlushScheduled else { return }
        isFlushScheduled = true
        let loopBound = NIOLoopBound(self, eventLoop: eventLoop)
        eventLoop.execute {
            loopBound.value.isFlushScheduled = false
            loopBound.value.writeWhatIsLeft()
        }
    }

    /// Writes the commands that tasks on other threads have added to the outbox.
    func drainOutbox() {
        let batch = outbox.take(context?.channel.allocator ?? ByteBufferAllocator())
        let now = eventLoop.now
        // A batch is accepted or refused as a whole. Refused commands must not be sent.
        var earliest: NIODeadline?
        for submission in batch.submissions {
            guard let next = enqueue(submission, now: now) else { continue }
            earliest = min(earliest ?? next, next)
        }
        outbox.recycle(batch.submissions)
        guard let earliest else { return }
        for piece in batch.pieces { append(piece) }
        writeWhatIsLeft()
        arm(earliest)
    }

    /// Appends bytes to those that are to be written. Large ones are not copied.
    private func append(_ piece: ByteBuffer) {
        if unwritten.readableBytes == 0 {
            unwritten = piece
        } else if piece.readableBytes < Outbox.largeSize {
            unwritten.writeImmutableBuffer(piece)
        } else {
            unwrittenPieces.append(unwritten)
            unwritten = piece
        }
    }

    /// - Returns: the time of the next deadline check, or `nil` when the command is refused.
    private func enqueue(_ submission: Submission, now: NIODeadline) -> NIODeadline? {
        let deadline = submission.timeout.map { now + $0 } ?? .distantFuture
        let slot = ConnectionStateMachine<Caller>.Slot(
            id: submission.id, context: submission.caller, expectedReplies: submission.expectedReplies,
            deadline: deadline, silenceLimit: submission.silenceLimit)
        if case .fail(let caller, let error) = machine.enqueue(slot, now: now) {
            outbox.room.give(submission.size)
            refuse(caller, error)
            return nil
        }
        unwrittenSize += submission.size
        var next = deadline
        if let silenceLimit { next = min(next, now + silenceLimit) }
        if let limit = submission.silenceLimit { next = min(next, now + limit) }
        return next
    }

    /// Fails a refused command. A callback is called after its caller has returned: it may send
    /// another command, whose refusal would otherwise recurse.
    private func refuse(_ caller: Caller, _ error: RedisError) {
        switch caller.answer {
        case .resume: caller.answer(.failure(error))
        case .call: eventLoop.execute { caller.answer(.failure(error)) }
        }
    }

    /// Abandons a command. It may still be in the outbox, if the thread that has to wake the event loop for it is slow.
    func cancel(_ id: UInt64) {
        if !outbox.isEmpty { drainOutbox() }
        if let failure = machine.cancel(id) { fail(failure) }
    }

    func write(_ commands: [RedisCommand]) {
        unwritten.write(commands, size: commands.encodedSize)
        writeWhatIsLeft()
    }

    /// Closes the connection when all outstanding replies have arrived.
    func closeWhenDrained() {
        drainOutbox()
        if case .close = machine.drain() { close(RedisError(.clientStopped, "the client has closed the connection")) }
    }

    func close(_ reason: RedisError) {
        closeReason = closeReason ?? reason
        if let context { context.close(promise: nil) } else { ended(reason) }
    }

    // MARK: From the channel's side

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }
    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let buffer = unwrapInboundIn(data)
        machine.heard(now: eventLoop.now)
        buffer.withUnsafeReadableBytes { decoder.feed($0) }
        do throws(ReplyDecodingError) {
            if let receive {
                var pushed: [RESPValue] = []
                while let reply = try decoder.next() { pushed.append(reply) }
                if !pushed.isEmpty { receive(pushed) }
            } else {
                while let reply = try decoder.next() {
                    if leavesReplica, reply.isFromReplica { isDemoted = true }
                    handle(machine.received(reply), reply)
                }
            }
        } catch {
            let code: RedisError.Code = error.kind == .tooLarge ? .replyTooLarge : .protocolViolation
            close(RedisError(code, error.description, underlying: error))
        }
        if isDemoted { close(RedisError(.connectionLost, "the server has become a replica")) }
        if machine.isDrained { close(RedisError(.clientStopped, "the client has closed the connection")) }
    }

    private func handle(_ action: ConnectionStateMachine<Caller>.ReplyAction, _ reply: RESPValue) {
        switch action {
        case .none: break
        case .deliver(let caller, let reply): caller.answer(.success(reply))
        case .settle(let caller, let reply): caller.settle?(reply)
        case .unexpected:
            // The server may give the reason before it closes a connection ("max number of clients reached").
            let error =
                reply.errorMessage.map { RedisError(serverMessage: $0) }
                ?? RedisError(.protocolViolation, "the server sent a reply to no command")
            close(error)
        }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        writeWhatIsLeft()
        context.fireChannelWritabilityChanged()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        close(RedisError(.connectionLost, "the connection failed: \(error)", underlying: error))
    }

    func channelInactive(context: ChannelHandlerContext) {
        ended(closeReason ?? RedisError(.connectionLost, "the server closed the connection"))
        context.fireChannelInactive()
    }

    private func writeWhatIsLeft() {
        guard let context, context.channel.isWritable, unwritten.readableBytes > 0 else { return }
        // Emptied first, because a large write changes the writability, which calls this function recursively.
        let (bytes, pieces, size) = (unwritten, unwrittenPieces, unwrittenSize)
        (unwritten, unwrittenPieces, unwrittenSize) = (ByteBuffer(), [], 0)
        machine.wroteAll()
        for piece in pieces { context.write(wrapOutboundOut(piece), promise: nil) }
        context.writeAndFlush(wrapOutboundOut(bytes), promise: nil)
        // Last, because it may resume callers that send again.
        if size > 0 { outbox.room.give(size) }
    }

    private func ended(_ reason: RedisError) {
        guard !isClosed else { return }
        isClosed = true
        timer?.scheduled.cancel()
        timer = nil
        (unwritten, unwrittenPieces) = (ByteBuffer(), [])
        receive = nil
        var unsent = reason
        unsent.mayHaveRun = false
        let neverSent = outbox.close(unsent)
        // Before any caller is resumed: a caller that sends again immediately must find the connection closed.
        onClose(reason)
        for failure in machine.close(reason) { fail(failure) }
        for submission in neverSent { submission.caller.answer(.failure(unsent)) }
    }

    private func fail(_ failure: ConnectionStateMachine<Caller>.Failure) {
        failure.context.answer(.failure(failure.error))
    }

    // MARK: Time

    /// Sets the one timer to the earliest deadline. A reply does not move it; it checks the
    /// deadlines when it fires.
    private func arm(_ deadline: NIODeadline) {
        guard deadline < .distantFuture, !isClosed else { return }
        if let timer, timer.deadline <= deadline { return }
        timer?.scheduled.cancel()
        let loopBound = NIOLoopBound(self, eventLoop: eventLoop)
        timer = (deadline, eventLoop.scheduleTask(deadline: deadline) { loopBound.value.timerFired() })
    }

    private func timerFired() {
        timer = nil
        let now = eventLoop.now
        for failure in machine.expire(now: now) { fail(failure) }
        var next = machine.nextDeadline ?? .distantFuture
        switch machine.lookForSilence(silenceLimit, now: now) {
        case .allowed: break
        case .lookAgain(let look): next = min(next, look)
        case .dead(let limit):
            let time = "more than \(limit.nanoseconds / 1_000_000) ms"
            close(RedisError(.connectionLost, "the server has sent nothing for \(time) although it owes a reply"))
            return
        }
        arm(next)
    }
}

extension RESPValue {
    /// Whether it is the refusal of a write by a replica. Servers before 7.0 put the reason of a
    /// script's failure behind words of their own.
    fileprivate var isFromReplica: Bool {
        guard case .error(let message) = self else { return false }
        return message.hasPrefix("READONLY") || message.hasPrefix("ERR Error") && message.contains("-READONLY")
    }
}
