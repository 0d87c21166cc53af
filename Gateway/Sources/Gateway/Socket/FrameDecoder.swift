import NIOCore
import NIOWebSocket

/// Decodes the frames of a WebSocket, and bounds what they can cost the node: a frame that exceeds a limit is refused when
/// its first bytes arrive, on the event loop, before anything is held for it.
///
/// Before the client is authenticated it sends one frame, which is not fragmented. Afterwards the number of frames in a second
/// is bounded, and the number of frames of one message.
final class FrameDecoder: ByteToMessageDecoder {
    typealias InboundOut = WebSocketFrame

    private enum Stage {
        /// Nothing has arrived.
        case first
        /// The first frame has arrived, and is verified.
        case verifying
        /// The next frame is the first one with the limits of a client that is authenticated.
        case accepted
        case authenticated
    }

    private var stage = Stage.first
    private let maxFragments: Int
    private var rate: FrameRate?
    /// The number of frames of the message that has begun.
    private var fragments = 0
    private var isInFrame = false
    /// The decoder of the frame that has begun. A decoder of frames has a fixed maximum size.
    private var decoder: WebSocketFrameDecoder
    private let maxBytes: Int

    init(_ configuration: GatewayConfiguration) {
        maxFragments = configuration.maxFragments
        maxBytes = configuration.maxBodyBytes
        rate = configuration.maxFramesPerSecond.map { FrameRate(perSecond: $0, now: .now()) }
        decoder = WebSocketFrameDecoder(maxFrameSize: configuration.maxAuthenticationBytes)
    }

    /// The limits are from now on those of a client that is authenticated.
    func setAuthenticated() { stage = .accepted }

    /// - Throws: `FrameReader.Violation`.
    func decode(context: ChannelHandlerContext, buffer: inout ByteBuffer) throws -> DecodingState {
        if !isInFrame {
            guard let byte = buffer.getInteger(at: buffer.readerIndex, as: UInt8.self) else { return .needMoreData }
            try begin(isFinal: byte & 0x80 != 0, WebSocketOpcode(encodedWebSocketOpcode: byte & 0x0F))
            isInFrame = true
        }
        do {
            let state = try decoder.decode(context: context, buffer: &buffer)
            if case .continue = state { isInFrame = false }
            return state
        } catch NIOWebSocketError.invalidFrameLength {
            if stage != .authenticated { Limit.authenticationBytes.count() }
            throw FrameReader.Violation(code: .messageTooLarge)
        } catch is NIOWebSocketError {
            throw FrameReader.Violation(code: .protocolError)
        }
    }

    private func begin(isFinal: Bool, _ opcode: WebSocketOpcode?) throws(FrameReader.Violation) {
        switch stage {
        case .first:
            guard isFinal, opcode == .text || opcode == .connectionClose else {
                throw FrameReader.Violation(code: .policyViolation)
            }
            stage = .verifying
        case .verifying:
            // A client may leave before it has the answer.
            guard opcode == .connectionClose else { throw FrameReader.Violation(code: .policyViolation) }
        case .accepted, .authenticated:
            if stage == .accepted { decoder = WebSocketFrameDecoder(maxFrameSize: maxBytes) }
            stage = .authenticated
            guard rate?.allows(.now()) ?? true else {
                Limit.frames.count()
                throw FrameReader.Violation(code: .policyViolation)
            }
            guard opcode?.isControlOpcode == false else { return }
            fragments += 1
            guard fragments <= maxFragments else {
                Limit.fragments.count()
                throw FrameReader.Violation(code: .messageTooLarge)
            }
            if isFinal { fragments = 0 }
        }
    }
}

/// Counts the frames of a second: a bucket that takes two seconds' frames, and is filled at the rate.
struct FrameRate {
    private let perSecond: Int
    private var rest: Double
    private var last: NIODeadline

    init(perSecond: Int, now: NIODeadline) {
        (self.perSecond, last) = (perSecond, now)
        rest = Double(2 * perSecond)
    }

    /// Counts a frame; `false` if there were too many.
    mutating func allows(_ now: NIODeadline) -> Bool {
        let seconds = Double((now - last).nanoseconds) / 1e9
        last = now
        rest = min(Double(2 * perSecond), rest + seconds * Double(perSecond))
        guard rest >= 1 else { return false }
        rest -= 1
        return true
    }
}

/// Closes a WebSocket whose client violates the protocol or exceeds a limit, with the code of the violation.
final class ViolationHandler: ChannelInboundHandler {
    typealias InboundIn = WebSocketFrame
    typealias OutboundOut = WebSocketFrame

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let violation = error as? FrameReader.Violation else { return context.fireErrorCaught(error) }
        context.channel.close(with: violation.code)
    }
}

extension Channel {
    /// Sends a close frame and closes the connection of a WebSocket. Not through the writer of the frames, which a task may
    /// use.
    func close(with code: WebSocketErrorCode) {
        closeLater()
        writeAndFlush(Socket.Output.closeFrame(code)).whenComplete { _ in self.closeOutput() }
    }

    /// Closes the connection when its client has closed it, and at the latest after ten seconds.
    ///
    /// A connection that is closed while bytes of its client arrive is reset: the client might lose what was written last.
    func closeLater() {
        let limit = eventLoop.scheduleTask(in: .seconds(10)) { self.close(promise: nil) }
        closeFuture.whenComplete { _ in limit.cancel() }
    }

    /// Ends what is written to the connection, or closes it if it has no half of it.
    func closeOutput() {
        close(mode: .output).whenFailure { _ in self.close(promise: nil) }
    }
}
