import Hummingbird
import Logging
import NIOConcurrencyHelpers
import NIOCore
import NIOWebSocket
import QueueListen

/// A client's WebSocket: authentication, then the pages of its mailbox and the answers to its frames.
struct Socket: Sendable {
    /// Why the socket is closed, as a close code.
    private struct Close: Error { var code: WebSocketErrorCode }

    private let gateway: Gateway
    private let frames: SocketChannel.Frames
    private let decoder: NIOLoopBound<FrameDecoder>
    private let target: String
    /// The time at which the client last sent anything.
    private let lastInputAt = NIOLockedValueBox(ContinuousClock.now)

    init(
        _ gateway: Gateway, _ frames: SocketChannel.Frames, _ decoder: NIOLoopBound<FrameDecoder>, target: String
    ) {
        (self.gateway, self.frames, self.decoder, self.target) = (gateway, frames, decoder, target)
    }

    /// Serves the socket until it is closed.
    func run() async {
        do {
            try await frames.executeThenClose { inbound, outbound in
                let output = Output(outbound: outbound)
                let code: WebSocketErrorCode?
                do { code = try await serve(inbound, output) } catch let close as Close {
                    code = close.code
                } catch let violation as FrameReader.Violation {
                    code = violation.code
                }
                try await output.close(code)
            }
        } catch {
            gateway.logger.debug("a socket has ended", metadata: ["error": "\(error)"])
        }
        frames.channel.close(promise: nil)
    }

    /// - Returns: the code with which to close; `nil` if the client has closed without one, or is gone.
    private func serve(
        _ inbound: NIOAsyncChannelInboundStream<WebSocketFrame>, _ output: Output
    ) async throws -> WebSocketErrorCode? {
        var iterator = inbound.makeAsyncIterator()
        var reader = FrameReader(maxBytes: gateway.configuration.maxBodyBytes)
        let deadline = frames.channel.eventLoop.scheduleTask(in: TimeAmount(gateway.configuration.authenticationTime)) {
            [frames] in
            frames.channel.close(with: .policyViolation)
        }
        defer { deadline.cancel() }
        guard case .text(let text)? = try await next(&iterator, &reader, output) else { return nil }
        deadline.cancel()
        let opened: Opened
        do {
            // The memory of a child task is free when it ends. The socket's task would keep it as long as the socket lasts.
            async let opening = open(text)
            opened = try await opening
        } catch {
            let problem = problem(of: error)
            try await output.send(["error": problem.json])
            return Self.closeCode(of: problem)
        }
        let session = opened.session
        defer { opened.place.close() }
        try await frames.channel.eventLoop.submit { [decoder] in decoder.value.setAuthenticated() }.get()
        try await output.send(["ready": ["time": JSON(session.verifiedAt), "expires": JSON(session.expires)]])
        return try await withThrowingTaskGroup(of: WebSocketErrorCode?.self) { group in
            defer { group.cancelAll() }
            group.addTask { try await deliver(opened.stream, after: opened.cursor, output) }
            while let input = try await next(&iterator, &reader, output) {
                switch input {
                case .text(let text):
                    async let reply = answer(text, session)
                    try await output.send(try await reply)
                case .close(let code): return code
                case .ping, .none: break
                }
            }
            return nil
        }
    }

    /// Returns the next input that concerns the socket; `nil` when the client is gone. Answers pings.
    private func next(
        _ iterator: inout NIOAsyncChannelInboundStream<WebSocketFrame>.AsyncIterator, _ reader: inout FrameReader,
        _ output: Output
    ) async throws -> FrameReader.Input? {
        while let frame = try await iterator.next() {
            lastInputAt.withLockedValue { $0 = .now }
            switch try reader.read(frame) {
            case .ping(let data): try await output.pong(data)
            case .none: break
            case let input: return input
            }
        }
        return nil
    }

    // MARK: Open

    /// The stream that the first frame has opened, and its session.
    private struct Opened: Sendable {
        var session: Session
        var place: OpenStreams.Place
        var stream: MailStream
        var cursor: Cursor?
    }

    /// Opens the stream of the session that the first frame signs.
    private func open(_ text: String) async throws -> Opened {
        let signature = try Self.signature(text)
        // Before the verification: an end of the session after it is noticed.
        let entry = SessionID(signature.session).map { gateway.watch.enter($0) }
        let claim = try await gateway.sessions.claim(signature)
        let session = try claim.verified(method: "GET", target: target, body: [])
        try await gateway.limits.countRequest(of: session)
        try await gateway.sessions.admit(claim)
        return Opened(
            session: session, place: try gateway.streams.open(session),
            stream: try MailStream(gateway, session, entry), cursor: try Query(target: target).cursor("after"))
    }

    private static func signature(_ text: String) throws(Problem) -> Signature {
        let frame = try JSON(object: Array(text.utf8))
        guard let parts = frame["auth"], let id = parts["session"]?.string, let time = parts["time"]?.integer,
            let nonce = parts["nonce"]?.string, let code = parts["signature"]?.string,
            let signature = Signature(session: id, time: "\(time)", nonce: nonce, signature: code)
        else { throw Problem(.malformed, "the first frame is {\"auth\": {session, time, nonce, signature}}") }
        return signature
    }

    /// The problem with which an error is answered.
    private func problem(of error: any Error) -> Problem { Problem(error, in: "/v1/socket", gateway.logger) }

    private static func closeCode(of problem: Problem) -> WebSocketErrorCode {
        switch problem.kind {
        case .unknownSession: .sessionExpired
        case .loggedInElsewhere: .superseded
        case .internal: .unexpectedServerError
        default: .policyViolation
        }
    }

    // MARK: Answers

    private func answer(_ text: String, _ session: Session) async throws -> JSON {
        guard let frame = try? JSON(object: Array(text.utf8)) else { throw Close(code: .policyViolation) }
        let (send, cursor) = (frame["send"], frame["ack"])
        do {
            if let send {
                try await gateway.limits.countRequest(of: session)
                return ["sent": try await gateway.send(send, from: session).json]
            }
            if let cursor {
                try await gateway.limits.countRequest(of: session)
                try await gateway.acknowledge(try AcknowledgeCall(cursor), of: session)
                return ["acked": cursor]
            }
        } catch {
            let reply: JSON = ["error": problem(of: error).json]
            return send == nil ? reply.with(("ack", cursor)) : reply.with(("id", send?["id"]))
        }
        throw Close(code: .policyViolation)
    }

    // MARK: Deliver

    /// Writes the pages of the mailbox, and closes the socket when the stream ends: the reader of its frames then ends too.
    private func deliver(_ stream: MailStream, after cursor: Cursor?, _ output: Output) async throws
        -> WebSocketErrorCode?
    {
        do { try await deliverAll(of: stream, after: cursor, output) } catch is MailStream.TooSlow {
            // The connection closes when the close frame has left, or cannot leave.
            return nil
        } catch let close as Close {
            try? await output.close(close.code)
        } catch is CancellationError {
            // The reader of the frames has ended, and closes.
            return nil
        } catch {
            // A read that was cancelled may end with another error. The reader of the frames has a code to close with.
            if Task.isCancelled { return nil }
            gateway.logger.debug("a stream has failed", metadata: ["error": "\(error)"])
            try? await output.close(.unexpectedServerError)
        }
        frames.channel.close(promise: nil)
        return nil
    }

    /// Writes the pages of the mailbox and why the stream has ended, and closes the socket.
    private func deliverAll(of stream: MailStream, after cursor: Cursor?, _ output: Output) async throws {
        let connection = MailStream.Connection(
            eventLoop: frames.channel.eventLoop, keepAlive: keepAlive,
            stopWriting: {
                // The connection is full: the frame leaves only if the client reads now.
                gateway.logger.debug("a socket's client takes nothing, the socket is closed")
                frames.channel.close(with: .tooSlow)
            })
        let end = try await stream.run(after: cursor, on: connection) { delivery in
            guard let delivery else { return try await output.ping() }
            try await output.sendPage(Self.frame(of: delivery), on: frames.channel.eventLoop)
        }
        switch end {
        case .superseded(let cursor):
            try await output.send(["superseded": ["cursor": .string(cursor.description)]])
            try await output.close(.superseded)
        case .expired: try await output.close(.sessionExpired)
        case .restart:
            let retry = gateway.configuration.reconnectTime
            try await output.send(["bye": ["reason": "restart", "retry": JSON(retry)]])
            try await output.close(.goingAway)
        }
        // The client answers with a close frame of its own, which ends the reader. It may not.
        try await Task.sleep(for: .seconds(2))
    }

    /// Sends a ping, or closes the socket of a client that has sent nothing for too long.
    private func keepAlive() -> EventLoopFuture<Void> {
        let channel = frames.channel
        guard ContinuousClock.now - lastInputAt.withLockedValue({ $0 }) < gateway.configuration.maxSilence else {
            channel.close(with: .goingAway)
            return channel.eventLoop.makeSucceededVoidFuture()
        }
        return channel.writeAndFlush(WebSocketFrame(fin: true, opcode: .ping, data: ByteBuffer()))
    }

    private static func frame(of delivery: Delivery) -> JSON {
        if let gap = JSON(gapOf: delivery) { return ["gap": gap] }
        return [
            "messages": .array(delivery.messages.map { JSON($0) }), "cursor": .string(delivery.cursor.description),
        ]
    }
}

extension Socket {
    /// Writes the socket's frames.
    struct Output: Sendable {
        let outbound: NIOAsyncChannelOutboundWriter<WebSocketFrame>
        private let isClosed = NIOLockedValueBox(false)

        init(outbound: NIOAsyncChannelOutboundWriter<WebSocketFrame>) { self.outbound = outbound }

        func send(_ json: JSON) async throws {
            try await outbound.write(WebSocketFrame(fin: true, opcode: .text, data: ByteBuffer(bytes: json.bytes)))
        }

        /// Sends a frame, and returns when it has left, except for at most `GatewayConfiguration.maxUnwaitedBytes`.
        func sendPage(_ json: JSON, on eventLoop: any EventLoop) async throws {
            let data = ByteBuffer(bytes: json.bytes)
            try await outbound.write(WebSocketFrame(fin: true, opcode: .text, data: data))
            // A write waits for room before it begins, not until its bytes have left. A pong that nobody has asked for has
            // no effect, and is written when the page has left. The event loop must have seen the page before.
            guard data.readableBytes > GatewayConfiguration.maxUnwaitedBytes else { return }
            try await eventLoop.submit {}.get()
            try await pong(ByteBuffer())
        }

        func ping() async throws {
            try await outbound.write(WebSocketFrame(fin: true, opcode: .ping, data: ByteBuffer()))
        }

        func pong(_ data: ByteBuffer) async throws {
            try await outbound.write(WebSocketFrame(fin: true, opcode: .pong, data: data))
        }

        /// Writes a close frame, unless one was written before.
        func close(_ code: WebSocketErrorCode?) async throws {
            let wasClosed = isClosed.withLockedValue { isClosed in
                defer { isClosed = true }
                return isClosed
            }
            if !wasClosed { try await outbound.write(Self.closeFrame(code)) }
        }

        static func closeFrame(_ code: WebSocketErrorCode?) -> WebSocketFrame {
            var data = ByteBuffer()
            if let code { data.write(webSocketErrorCode: code) }
            return WebSocketFrame(fin: true, opcode: .connectionClose, data: data)
        }
    }
}
