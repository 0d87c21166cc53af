import NIOCore
import NIOWebSocket

/// Reads the frames of a WebSocket: joins fragments, and checks what RFC 6455 demands of a client.
struct FrameReader {
    /// The meaning of a frame for the socket.
    enum Input: Equatable {
        case text(String)
        case ping(ByteBuffer)
        /// A pong, or a part of a message.
        case none
        /// The client closes, with its code if it gave one.
        case close(WebSocketErrorCode?)
    }

    /// The close code with which a violation is answered.
    struct Violation: Error, Equatable { var code: WebSocketErrorCode }

    private let maxBytes: Int
    private var fragments: ByteBuffer?

    init(maxBytes: Int) { self.maxBytes = maxBytes }

    /// - Throws: `Violation`.
    mutating func read(_ frame: WebSocketFrame) throws(Violation) -> Input {
        guard frame.maskKey != nil, !frame.rsv1, !frame.rsv2, !frame.rsv3 else { throw Violation(code: .protocolError) }
        if frame.opcode.isControlOpcode {
            guard frame.fin, frame.length <= 125 else { throw Violation(code: .protocolError) }
        }
        let data = frame.unmaskedData
        switch frame.opcode {
        case .text:
            guard fragments == nil else { throw Violation(code: .protocolError) }
            if frame.fin { return .text(try text(data)) }
            fragments = data
            return .none
        case .continuation:
            // Taken, so that the bytes are appended in place: a copy for each fragment would cost the square of their number.
            guard var whole = fragments.take() else { throw Violation(code: .protocolError) }
            guard whole.readableBytes + data.readableBytes <= maxBytes else { throw Violation(code: .messageTooLarge) }
            whole.writeImmutableBuffer(data)
            if frame.fin { return .text(try text(whole)) }
            fragments = whole
            return .none
        case .binary: throw Violation(code: .unacceptableData)
        case .ping: return .ping(data)
        case .pong: return .none
        case .connectionClose: return .close(try closeCode(data))
        default: throw Violation(code: .protocolError)
        }
    }

    private func text(_ data: ByteBuffer) throws(Violation) -> String {
        guard let text = String(validating: data.readableBytesView, as: UTF8.self) else {
            throw Violation(code: .dataInconsistentWithMessage)
        }
        return text
    }

    private func closeCode(_ data: ByteBuffer) throws(Violation) -> WebSocketErrorCode? {
        var data = data
        guard data.readableBytes > 0 else { return nil }
        guard let code = data.readInteger(as: UInt16.self) else { throw Violation(code: .protocolError) }
        guard String(validating: data.readableBytesView, as: UTF8.self) != nil else {
            throw Violation(code: .dataInconsistentWithMessage)
        }
        switch code {
        case 1000...1003, 1007...1014, 3000...4999: return WebSocketErrorCode(codeNumber: Int(code))
        default: throw Violation(code: .protocolError)
        }
    }
}

extension WebSocketErrorCode {
    static let sessionExpired = WebSocketErrorCode(codeNumber: 4001)
    static let superseded = WebSocketErrorCode(codeNumber: 4002)
    static let tooSlow = WebSocketErrorCode(codeNumber: 4003)
}
