import NIOCore
import NIOHTTP1
import NIOWebSocket

/// Upgrades a connection to a WebSocket with the gateway's own decoder of frames.
struct SocketUpgrader: NIOTypedHTTPServerProtocolUpgrader {
    typealias UpgradeResult = SocketChannel.Connection

    private let gateway: Gateway
    /// Answers the handshake, and nothing else.
    private let handshake: NIOTypedWebSocketServerUpgrader<UpgradeResult>

    var supportedProtocol: String { handshake.supportedProtocol }
    var requiredUpgradeHeaders: [String] { handshake.requiredUpgradeHeaders }

    init(_ gateway: Gateway) {
        self.gateway = gateway
        handshake = NIOTypedWebSocketServerUpgrader(
            shouldUpgrade: { channel, head in
                let headers =
                    gateway.acceptsSocket(head)
                    ? HTTPHeaders([("Sec-WebSocket-Protocol", Gateway.subprotocol)]) : nil
                return channel.eventLoop.makeSucceededFuture(headers)
            },
            upgradePipelineHandler: { channel, _ in channel.eventLoop.makeSucceededFuture(.none) })
    }

    func buildUpgradeResponse(
        channel: any Channel, upgradeRequest: HTTPRequestHead, initialResponseHeaders: HTTPHeaders
    ) -> EventLoopFuture<HTTPHeaders> {
        handshake.buildUpgradeResponse(
            channel: channel, upgradeRequest: upgradeRequest, initialResponseHeaders: initialResponseHeaders)
    }

    func upgrade(channel: any Channel, upgradeRequest: HTTPRequestHead) -> EventLoopFuture<UpgradeResult> {
        channel.eventLoop.makeCompletedFuture {
            let pipeline = channel.pipeline.syncOperations
            let decoder = FrameDecoder(gateway.configuration)
            try pipeline.addHandler(WebSocketFrameEncoder())
            try pipeline.addHandler(ByteToMessageHandler(decoder))
            try pipeline.addHandler(ViolationHandler())
            let frames = try SocketChannel.Frames(wrappingChannelSynchronously: channel)
            return .socket(
                frames, NIOLoopBound(decoder, eventLoop: channel.eventLoop), target: upgradeRequest.uri)
        }
    }
}
