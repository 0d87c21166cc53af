public import HummingbirdCore
import Logging
import HTTPTypes
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
        HTTPServerBuilder { responder in SocketChannel(gateway: self, responder: responder) }
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
        case socket(Frames, target: String)
        /// The request was not valid.
        case none
    }

    struct Value: ServerChildChannelValue {
        let connection: EventLoopFuture<Connection>
        let channel: any Channel
    }

    let gateway: Gateway
    let responder: HTTPChannelHandler.Responder

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        let gateway = gateway
        return channel.eventLoop.makeCompletedFuture {
            Self.limitWriting(channel, gateway.configuration.maxWriteTime * 2 + .seconds(5))
            let upgrader = NIOTypedWebSocketServerUpgrader<Connection>(
                maxFrameSize: gateway.configuration.maxBodyBytes,
                shouldUpgrade: { channel, head in
                    let headers =
                        gateway.acceptsSocket(head)
                        ? HTTPHeaders([("Sec-WebSocket-Protocol", Gateway.subprotocol)]) : nil
                    return channel.eventLoop.makeSucceededFuture(headers)
                },
                upgradePipelineHandler: { channel, head in
                    channel.eventLoop.makeCompletedFuture {
                        .socket(try Frames(wrappingChannelSynchronously: channel), target: head.uri)
                    }
                })
            let (headerTime, bodyTime) = (gateway.configuration.headerTime, gateway.configuration.bodyTime)
            let upgrade = NIOTypedHTTPServerUpgradeConfiguration(
                upgraders: [upgrader],
                notUpgradingCompletionHandler: { channel in
                    channel.eventLoop.makeCompletedFuture {
                        let pipeline = channel.pipeline.syncOperations
                        let connection = ClientConnection(channel)
                        try pipeline.addHandler(HTTP1ToHTTPServerCodec(secure: false))
                        try pipeline.addHandler(ClientConnectionHandler(connection))
                        try pipeline.addHandler(RequestTimer(headerTime: headerTime, bodyTime: bodyTime))
                        try pipeline.addHandler(HTTPConnectionStateHandler(idleTimeout: nil, logger: logger))
                        return .http(
                            try HTTPPart(
                                wrappingChannelSynchronously: channel,
                                configuration: .init(isOutboundHalfClosureEnabled: true)), connection)
                    }
                })
            // Of the first request; RequestTimer is in the pipeline from its body on.
            let timer = FirstHeaderTimer(headerTime)
            try channel.pipeline.syncOperations.addHandler(timer)
            let (encoder, filter) = (HTTPResponseEncoder(), UpgradeFilter(gateway))
            let decoder = ByteToMessageHandler(HTTPRequestDecoder(leftOverBytesStrategy: .forwardBytes))
            let upgradeHandler = NIOTypedHTTPServerUpgradeHandler(
                httpEncoder: encoder, extraHTTPHandlers: [decoder, filter], upgradeConfiguration: upgrade)
            try channel.pipeline.syncOperations.addHandlers(encoder, decoder, filter, upgradeHandler)
            let end = timer.loopBound
            upgradeHandler.upgradeResultFuture.whenComplete { _ in end.value.stop() }
            return Value(connection: upgradeHandler.upgradeResultFuture, channel: channel)
        }
    }

    /// Sets the time after which the system closes a connection whose client acknowledges no bytes: a client that lost its
    /// network has closed nothing. The same holds for a client that is connected and does not read. So the time is longer
    /// than the one after which a stream ends by itself: the client can still read what was written before.
    private static func limitWriting(_ channel: any Channel, _ time: Duration) {
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
            case .socket(let frames, let target): await Socket(gateway, frames, target: target).run()
            case .none: break
            }
        } catch {
            logger.debug("a connection has failed", metadata: ["error": "\(error)"])
            value.channel.close(promise: nil)
        }
    }
}
