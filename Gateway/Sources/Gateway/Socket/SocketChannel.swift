import HTTPTypes
public import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import NIOHTTPTypesHTTP1
import NIOWebSocket

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

extension Gateway {
    /// Returns the server for an application whose router has the gateway's routes: HTTP/1.1, with
    /// the upgrade of `/v1/socket` to a WebSocket.
    ///
    /// For TLS, pass it to `HTTPServerBuilder.tls(_:tlsConfiguration:)` of `HummingbirdTLS`.
    public func server() -> HTTPServerBuilder {
        HTTPServerBuilder { responder in
            AcceptedConnections(
                SocketChannel(gateway: self, connections: self.connections, upgrades: true, responder: responder))
        }
    }

    /// Returns the server for an application with pages for operators, on an address of its own: with
    /// the time limits of ``server()``, connections of its own, at most 256, and without the upgrade.
    public func operationsServer() -> HTTPServerBuilder {
        let connections = Connections(max: 256, maxOfAddress: nil)
        return HTTPServerBuilder { responder in
            AcceptedConnections(
                SocketChannel(gateway: self, connections: connections, upgrades: false, responder: responder))
        }
    }
}

/// A connection that is HTTP, or becomes a WebSocket with its first request.
struct SocketChannel: HTTPChannelHandler {
    typealias HTTPPart = NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart>
    typealias Frames = NIOAsyncChannel<WebSocketFrame, WebSocketFrame>

    /// The protocol that a connection speaks after its first request.
    enum Connection: Sendable {
        case http(HTTPPart, ClientConnection)
        /// With the request that was upgraded.
        case socket(Frames, NIOLoopBound<FrameDecoder>, target: String)
        /// The request was not valid.
        case none
    }

    struct Value: ServerChildChannelValue {
        let connection: EventLoopFuture<Connection>
        let channel: any Channel
    }

    let gateway: Gateway
    let connections: Connections
    /// Whether /v1/socket is upgraded.
    let upgrades: Bool
    let responder: HTTPChannelHandler.Responder
    private let turns = ServerTurns()

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        let (gateway, upgrades, turns) = (gateway, upgrades, turns)
        if let limit = connections.add(channel) {
            limit.count()
            channel.close(promise: nil)
            let none = channel.eventLoop.makeSucceededFuture(Connection.none)
            return channel.eventLoop.makeSucceededFuture(Value(connection: none, channel: channel))
        }
        return channel.eventLoop.makeCompletedFuture {
            Self.limitReading(channel)
            Self.limitWriting(
                channel, gateway.configuration.maxWriteTime * 2 + .seconds(5),
                bytes: gateway.configuration.sendBufferBytes)
            let (headerTime, bodyTime) = (gateway.configuration.headerTime, gateway.configuration.bodyTime)
            let upgrade = NIOTypedHTTPServerUpgradeConfiguration(
                upgraders: [SocketUpgrader(gateway)],
                notUpgradingCompletionHandler: { channel in
                    channel.eventLoop.makeCompletedFuture {
                        let pipeline = channel.pipeline.syncOperations
                        let connection = ClientConnection(channel)
                        try pipeline.addHandler(HTTP1ToHTTPServerCodec(secure: false))
                        try pipeline.addHandler(ClientConnectionHandler(connection))
                        let reader = try pipeline.handler(type: TurnReader.self)
                        try pipeline.addHandler(
                            RequestTimer(headerTime: headerTime, bodyTime: bodyTime, reader: reader))
                        try pipeline.addHandler(HTTPConnectionStateHandler(idleTimeout: nil, logger: logger))
                        return .http(
                            try HTTPPart(
                                wrappingChannelSynchronously: channel,
                                configuration: .init(isOutboundHalfClosureEnabled: true)), connection)
                    }
                })
            // Of the first request; RequestTimer is in the pipeline from its body on.
            let timer = FirstHeaderTimer(headerTime)
            let reader = TurnReader(turns.turns(of: channel.eventLoop))
            try channel.pipeline.syncOperations.addHandlers(reader, timer)
            let encoder = HTTPResponseEncoder()
            let filter = UpgradeFilter(accepts: { upgrades && gateway.acceptsSocket($0) })
            var limits = NIOHTTPDecoderLimitConfiguration()
            limits.maxHeaderFieldSize = gateway.configuration.maxHeaderBytes
            limits.maxHeaderListSize = gateway.configuration.maxHeaderBytes
            limits.maxHeaderFieldCount = 100
            let decoder = ByteToMessageHandler(
                HTTPRequestDecoder(leftOverBytesStrategy: .forwardBytes, limitConfiguration: limits))
            let upgradeHandler = NIOTypedHTTPServerUpgradeHandler(
                httpEncoder: encoder, extraHTTPHandlers: [decoder, filter], upgradeConfiguration: upgrade)
            try channel.pipeline.syncOperations.addHandlers(encoder, decoder, filter, upgradeHandler)
            let end = timer.loopBound
            upgradeHandler.upgradeResultFuture.whenComplete { _ in end.value.stop() }
            return Value(connection: upgradeHandler.upgradeResultFuture, channel: channel)
        }
    }

    /// Bounds what is read from a connection before anything of it was processed.
    private static func limitReading(_ channel: any Channel) {
        let size = GatewayConfiguration.maxReadBytes
        // A channel that is not a socket does not have these options.
        try? channel.syncOptions?.setOption(.maxMessagesPerRead, value: 1)
        try? channel.syncOptions?.setOption(
            .recvAllocator, value: AdaptiveRecvByteBufferAllocator(minimum: 64, initial: 2048, maximum: size))
    }

    /// Bounds what the system buffers for a client that does not read, and sets the time after which it closes a connection
    /// whose client acknowledges no bytes: a client that lost its network has closed nothing. The same holds for a client
    /// that is connected and does not read. So the time is longer than the one after which a stream ends by itself: the
    /// client can still read what was written before.
    private static func limitWriting(_ channel: any Channel, _ time: Duration, bytes: Int) {
        try? channel.syncOptions?.setOption(.socketOption(.so_sndbuf), value: .init(bytes))
        #if os(Linux)
            // A connection that is not TCP does not have this option.
            try? channel.syncOptions?.setOption(
                .tcpOption(NIOBSDSocket.Option(rawValue: TCP_USER_TIMEOUT)),
                value: .init(time / .milliseconds(1)))
        #endif
    }

    func handle(value: Value, logger: Logger) async {
        do {
            switch try await value.connection.get() {
            case .http(let channel, let connection):
                await ClientConnection.$current.withValue(connection) {
                    await handleHTTP(asyncChannel: channel, logger: logger)
                }
            case .socket(let frames, let decoder, let target):
                await Socket(gateway, frames, decoder, target: target).run()
            case .none: break
            }
        } catch {
            logger.debug("a connection has failed", metadata: ["error": "\(error)"])
            value.channel.close(promise: nil)
        }
    }
}
