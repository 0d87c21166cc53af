import NIOCore
import Testing

@testable import Gateway

/// A client's end of a WebSocket that writes bytes of its own choice, valid or not.
struct RawSocket {
    /// A frame of the gateway.
    struct Frame: Equatable, Sendable {
        var opcode: UInt8
        var payload: [UInt8]
    }

    var connection: RawConnection

    /// The bytes of a client's frame.
    ///
    /// - Parameter length: what the header announces, if it is not the length of the payload.
    static func frame(
        _ opcode: UInt8, _ payload: [UInt8], fin: Bool = true, reserved: UInt8 = 0, isMasked: Bool = true,
        length: UInt64? = nil
    ) -> [UInt8] {
        var bytes = [(fin ? 0x80 : 0) | reserved << 4 | opcode]
        let (length, mask): (UInt64, UInt8) = (length ?? UInt64(payload.count), isMasked ? 0x80 : 0)
        switch length {
        case ...125: bytes.append(mask | UInt8(length))
        case ...65535: bytes += [mask | 126, UInt8(length >> 8), UInt8(length & 0xFF)]
        default: bytes += [mask | 127] + (0..<8).map { UInt8(truncatingIfNeeded: length >> (56 - 8 * $0)) }
        }
        guard isMasked else { return bytes + payload }
        let key = (0..<4).map { _ in UInt8.random(in: 0...255) }
        return bytes + key + payload.enumerated().map { $1 ^ key[$0 % 4] }
    }

    static func text(_ text: String, fin: Bool = true) -> [UInt8] { frame(1, Array(text.utf8), fin: fin) }

    /// A close frame.
    static func close(_ code: UInt16, _ reason: [UInt8] = []) -> [UInt8] {
        frame(8, [UInt8(code >> 8), UInt8(code & 0xFF)] + reason)
    }

    /// The next frame; `nil` at the end of the connection.
    mutating func next() async throws -> Frame? {
        guard let head = try await connection.read(2) else { return nil }
        try #require(head[0] & 0xF0 == 0x80 && head[1] & 0x80 == 0, "fragmented, reserved or masked: \(head)")
        var length = Int(head[1])
        if length > 125 {
            let bytes = try #require(try await connection.read(length == 126 ? 2 : 8))
            length = bytes.reduce(0) { $0 << 8 | Int($1) }
        }
        return Frame(opcode: head[0] & 0x0F, payload: try #require(try await connection.read(length)))
    }

    /// The frames up to the end of the connection, pings left out.
    mutating func rest() async throws -> [Frame] {
        var frames: [Frame] = []
        while let frame = try await next() { if frame.opcode != 9 { frames.append(frame) } }
        return frames
    }

    // MARK: Echo

    /// A text frame that the gateway answers with the same text: it is no cursor.
    static func echo(_ text: String) -> String { "{\"ack\":\"\(text)\"}" }

    /// Reads the answer to an echo, and returns its text.
    mutating func echoed() async throws -> String? {
        while let frame = try await next() {
            // The gateway may send a ping before it.
            if frame.opcode == 9 { continue }
            try #require(frame.opcode == 1, "\(frame)")
            return try JSONParser.parse(frame.payload)["ack"]?.string
        }
        return nil
    }
}

/// Opens a socket without authenticating it, and closes its connection after the body.
func withUpgradedSocket<Result: Sendable>(
    _ node: TestNode, _ body: (inout RawSocket) async throws -> Result
) async throws -> Result {
    try await withRawConnection(port: node.port) { connection in
        try await connection.write(
            "GET /v1/socket HTTP/1.1\r\nHost: gateway\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n"
                + "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                + "Sec-WebSocket-Protocol: ql.v1\r\n\r\n")
        let head = try #require(try await connection.readHead())
        try #require(head.hasPrefix("HTTP/1.1 101 "), "\(head)")
        // The key and its answer are those of RFC 6455, 1.3.
        #expect(head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="))
        var socket = RawSocket(connection: connection)
        return try await body(&socket)
    }
}

/// Opens a socket of a client, authenticates it, and closes its connection after the body.
func withRawSocket<Result: Sendable>(
    _ node: TestNode, _ client: TestClient, _ body: (inout RawSocket) async throws -> Result
) async throws -> Result {
    try await withUpgradedSocket(node) { socket in
        let auth = TestSocket.authentication(client, target: "/v1/socket")
        try await socket.connection.write(RawSocket.frame(1, auth.bytes))
        let ready = try #require(try await socket.next())
        try #require(try JSONParser.parse(ready.payload)["ready"] != nil)
        return try await body(&socket)
    }
}
