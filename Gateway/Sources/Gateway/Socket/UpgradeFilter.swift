import NIOCore
import NIOHTTP1

/// Turns requests that ask for an upgrade and get none into the last requests of their connections.
///
/// NIO's decoder reads nothing after such a request, because the other protocol would follow it. And NIO's handler for
/// upgrades does not pass on the header of a request that asks for an upgrade and gets none, so that it could not be
/// answered.
final class UpgradeFilter: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    private let gateway: Gateway
    private var (requests, responses) = (0, 0)
    /// The number of the request that is the last one.
    private var lastRequest: Int?

    init(_ gateway: Gateway) { self.gateway = gateway }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard case .head(var head) = unwrapInboundIn(data) else { return context.fireChannelRead(data) }
        requests += 1
        let asksForUpgrade = head.headers.contains(name: "Upgrade") || head.method == .CONNECT
        if asksForUpgrade, requests > 1 || !gateway.acceptsSocket(head) {
            head.headers.remove(name: "Upgrade")
            head.headers.replaceOrAdd(name: "Connection", value: "close")
            lastRequest = lastRequest ?? requests
        }
        context.fireChannelRead(wrapInboundOut(.head(head)))
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard case .head(var head) = unwrapOutboundIn(data), head.status.code >= 200 else {
            return context.write(data, promise: promise)
        }
        responses += 1
        if responses == lastRequest { head.headers.replaceOrAdd(name: "Connection", value: "close") }
        context.write(wrapOutboundOut(.head(head)), promise: promise)
    }
}
