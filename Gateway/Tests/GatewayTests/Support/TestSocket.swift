import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import NIOWebSocket
import Testing

@testable import Gateway

/// A client's end of a WebSocket, which can send any frame.
///
/// NIO's client removes the HTTP decoder in a later turn of the event loop: a socket that the server closes at once may end
/// before, without its close frame. ``RawSocket`` reads that.
final class TestSocket: Sendable {
    private let channel: NIOAsyncChannel<WebSocketFrame, WebSocketFrame>
    private let frames: AsyncStream<WebSocketFrame>
    private let reading: Task<Void, Never>

    /// The settings of TLS, while a test of it runs.
    @TaskLocal static var tls: NIOSSLContext?

    private enum Upgrade: Sendable {
        case socket(NIOAsyncChannel<WebSocketFrame, WebSocketFrame>)
        case refused
    }

    /// Opens a socket, without authenticating.
    ///
    /// - Throws: an error if the upgrade is refused.
    init(
        _ url: String, target: String = "/v1/socket", subprotocol: String? = "ql.v1", origin: String? = nil,
        headers more: HTTPHeaders = [:]
    ) async throws {
        let address = try #require(URL(string: url))
        let (host, port) = (address.host ?? "", address.port ?? 0)
        let tls = Self.tls
        let upgrade: EventLoopFuture<Upgrade> = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connect(host: host, port: port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    if let tls {
                        let handler = try NIOSSLClientHandler(context: tls, serverHostname: host)
                        try channel.pipeline.syncOperations.addHandler(handler)
                    }
                    let upgrader = NIOTypedWebSocketClientUpgrader<Upgrade>(
                        maxFrameSize: 16 << 20,
                        upgradePipelineHandler: { channel, _ in
                            channel.eventLoop.makeCompletedFuture {
                                .socket(
                                    try NIOAsyncChannel(
                                        wrappingChannelSynchronously: channel,
                                        configuration: .init(isOutboundHalfClosureEnabled: true)))
                            }
                        })
                    var headers: HTTPHeaders = ["Host": "\(host):\(port)", "Content-Length": "0"]
                    if let subprotocol { headers.add(name: "Sec-WebSocket-Protocol", value: subprotocol) }
                    headers.add(contentsOf: more)
                    if let origin { headers.add(name: "Origin", value: origin) }
                    let head = HTTPRequestHead(version: .http1_1, method: .GET, uri: target, headers: headers)
                    return try channel.pipeline.syncOperations.configureUpgradableHTTPClientPipeline(
                        configuration: .init(
                            upgradeConfiguration: .init(
                                upgradeRequestHead: head, upgraders: [upgrader],
                                notUpgradingCompletionHandler: { channel in
                                    channel.close(promise: nil)
                                    return channel.eventLoop.makeSucceededFuture(.refused)
                                })))
                }
            }
        guard case .socket(let channel) = try await upgrade.get() else { throw Refused() }
        self.channel = channel
        let (frames, continuation) = AsyncStream<WebSocketFrame>.makeStream()
        self.frames = frames
        reading = Task {
            try? await channel.executeThenClose { inbound, _ in
                for try await frame in inbound { continuation.yield(frame) }
            }
            continuation.finish()
        }
    }

    struct Refused: Error {}

    deinit {
        reading.cancel()
        channel.channel.close(promise: nil)
    }

    /// Opens a socket of a client, and authenticates.
    static func open(_ client: TestClient, after: String? = nil) async throws -> TestSocket {
        let target = "/v1/socket" + (after.map { "?after=\($0)" } ?? "")
        let socket = try await TestSocket(client.url, target: target)
        try await socket.send(authentication(client, target: target))
        let ready = try await socket.json()
        try #require(ready?["ready"]?["expires"]?.integer != nil, "\(String(describing: ready))")
        return socket
    }

    static func authentication(_ client: TestClient, target: String, time: Int? = nil, nonce: String? = nil) -> JSON {
        let headers = client.headers("GET", target, time: time, nonce: nonce)
        return [
            "auth": [
                "session": .string(client.session), "time": .number(headers["X-Time"][0]),
                "nonce": .string(headers["X-Nonce"][0]), "signature": .string(headers["X-Signature"][0]),
            ]
        ]
    }

    // MARK: Write

    func send(_ json: JSON) async throws { try await send(.text, json.bytes) }

    func send(_ opcode: WebSocketOpcode, _ bytes: [UInt8], fin: Bool = true, isMasked: Bool = true) async throws {
        let frame = WebSocketFrame(
            fin: fin, opcode: opcode, maskKey: isMasked ? .random() : nil, data: ByteBuffer(bytes: bytes))
        try await channel.channel.writeAndFlush(frame)
    }

    func close() async throws { try await channel.channel.close() }

    /// Stops reading, as a client does that hangs.
    func stopReading() async throws { try await channel.channel.setOption(.autoRead, value: false).get() }

    func continueReading() async throws { try await channel.channel.setOption(.autoRead, value: true).get() }

    // MARK: Read

    /// A frame or the end of the connection.
    enum Input: Equatable, Sendable {
        case json(JSON)
        case ping
        case pong([UInt8])
        case close(Int?)
        /// The connection has ended.
        case end
    }

    func next() async throws -> Input {
        for await frame in frames {
            var data = frame.unmaskedData
            switch frame.opcode {
            case .text: return .json(try JSONParser.parse(Array(data.readableBytesView)))
            case .ping: return .ping
            case .pong: return .pong(Array(data.readableBytesView))
            case .connectionClose: return .close(data.readInteger(as: UInt16.self).map { Int($0) })
            default: Issue.record("an unexpected frame: \(frame)")
            }
        }
        return .end
    }

    /// The next JSON; `nil` if the socket is closed. Answers each ping before it, as a browser does.
    func json() async throws -> JSON? {
        while true {
            switch try await next() {
            case .json(let json): return json
            case .ping: try await send(.pong, [])
            case .pong: continue
            case .close, .end: return nil
            }
        }
    }

    /// Reads until the socket is closed, and returns the code.
    func closeCode() async throws -> Int? {
        while true {
            switch try await next() {
            case .close(let code): return code
            case .end: return nil
            case .json, .ping, .pong: continue
            }
        }
    }
}
