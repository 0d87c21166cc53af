import Crypto
import Foundation
import NIOCore
import NIOPosix

/// A connection to a server that writes requests and reads bytes, and does little else.
struct Connection {
    let port: Int
    private var inbound: NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator
    private let outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>
    private var buffer = ByteBuffer()

    /// Connects, and closes the connection after the body.
    static func with<Result: Sendable>(
        port: Int, _ body: (inout Connection) async throws -> Result
    ) async throws -> Result {
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .connect(host: "127.0.0.1", port: port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                }
            }
        return try await channel.executeThenClose { inbound, outbound in
            var connection = Connection(port: port, inbound: inbound.makeAsyncIterator(), outbound: outbound)
            return try await body(&connection)
        }
    }

    private init(
        port: Int, inbound: NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator,
        outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>
    ) {
        self.port = port
        self.inbound = inbound
        self.outbound = outbound
    }

    func write(_ bytes: [UInt8]) async throws { try await outbound.write(ByteBuffer(bytes: bytes)) }

    func write(_ text: String) async throws { try await outbound.write(ByteBuffer(string: text)) }

    /// Reads up to and with a text, and returns all of it.
    mutating func read(to end: String) async throws -> String {
        let end = Array(end.utf8)
        while true {
            let view = buffer.readableBytesView
            if view.count >= end.count {
                let starts = view.startIndex...view.endIndex - end.count
                if let start = starts.first(where: { view[$0..<$0 + end.count].elementsEqual(end) }) {
                    return buffer.readString(length: start - view.startIndex + end.count) ?? ""
                }
            }
            try await receive()
        }
    }

    /// Sends a request, and returns the status and the body of the reply.
    mutating func call(_ request: String) async throws -> (status: Int, body: String) {
        try await write(request)
        let head = try await read(to: "\r\n\r\n").lowercased()
        let status = Int(head.dropFirst(9).prefix(3)) ?? 0
        let field = head.split(separator: "\r\n").first { $0.hasPrefix("content-length: ") }
        let length = field.flatMap { Int($0.dropFirst(16)) } ?? 0
        while buffer.readableBytes < length { try await receive() }
        return (status, buffer.readString(length: length) ?? "")
    }

    private mutating func receive() async throws {
        guard var next = try await inbound.next() else { throw BenchmarkError("the server has closed a connection") }
        buffer.discardReadBytes()
        buffer.writeBuffer(&next)
    }
}

/// A client's session, as docs/http.md describes it.
struct Client: Sendable {
    var user: String
    var session: String
    var token: String
    var cursor: String

    /// Logs in.
    init(_ user: String, _ connection: inout Connection) async throws {
        let body = #"{"user":"\#(user)","device":"bench","credential":null}"#
        let reply = try await connection.call(
            "POST /v1/sessions HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\n"
                + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
        func field(_ name: String) throws -> String {
            let parts = reply.body.components(separatedBy: "\"\(name)\":\"")
            guard reply.status == 201, parts.count == 2 else { throw BenchmarkError("no session: \(reply)") }
            return String(parts[1].prefix { $0 != "\"" })
        }
        self.user = user
        (session, token, cursor) = (try field("session"), try field("token"), try field("cursor"))
    }

    private func signature(
        _ method: String, _ target: String, _ body: String, _ time: String, _ nonce: String
    ) -> String {
        let digest = SHA256.hash(data: Data(body.utf8)).map { String(format: "%02x", $0) }.joined()
        let text = ["v1", method, target, session, time, nonce, digest].joined(separator: "\n")
        let code = HMAC<SHA256>.authenticationCode(
            for: Data(text.utf8), using: SymmetricKey(data: Data(token.utf8)))
        return "v1=" + code.map { String(format: "%02x", $0) }.joined()
    }

    /// A signed request.
    func request(_ method: String, _ target: String, body: String = "", headers: String = "") -> String {
        let (time, nonce) = ("\(Int(Date().timeIntervalSince1970 * 1000))", UUID().uuidString)
        var text =
            "\(method) \(target) HTTP/1.1\r\nHost: gateway\r\nX-Session: \(session)\r\nX-Time: \(time)\r\n"
            + "X-Nonce: \(nonce)\r\nX-Signature: \(signature(method, target, body, time, nonce))\r\n\(headers)"
        if !body.isEmpty { text += "Content-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n" }
        return text + "\r\n" + body
    }

    /// The first frame of a socket, masked with zeros.
    func authentication(_ target: String) -> [UInt8] {
        let (time, nonce) = ("\(Int(Date().timeIntervalSince1970 * 1000))", UUID().uuidString)
        let text =
            #"{"auth":{"session":"\#(session)","time":\#(time),"nonce":"\#(nonce)","#
            + #""signature":"\#(signature("GET", target, "", time, nonce))"}}"#
        let count = text.utf8.count
        return [0x81, 0x80 | 126, UInt8(count >> 8), UInt8(count & 0xFF), 0, 0, 0, 0] + Array(text.utf8)
    }
}
