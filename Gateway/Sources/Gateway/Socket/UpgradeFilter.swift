import NIOCore
import NIOHTTP1

/// Turns requests that ask for an upgrade and get none into the last requests of their connections, and those of HTTP/1.0,
/// whose responses end with the connection. A target in absolute form becomes the same as a path.
///
/// NIO's decoder reads nothing after such a request, because the other protocol would follow it. And NIO's handler for
/// upgrades does not pass on the header of a request that asks for an upgrade and gets none, so that it could not be
/// answered.
final class UpgradeFilter: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    private let accepts: (HTTPRequestHead) -> Bool
    private var (requests, responses) = (0, 0)
    /// The number of the request that is the last one.
    private var lastRequest: Int?
    /// Whether the last request is one of HTTP/1.0, which does not know chunks.
    private var lastIsOld = false

    /// - Parameter accepts: whether a request for an upgrade is accepted.
    init(accepts: @escaping (HTTPRequestHead) -> Bool) { self.accepts = accepts }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard case .head(var head) = unwrapInboundIn(data) else { return context.fireChannelRead(data) }
        requests += 1
        Self.removeAuthority(&head)
        let isOld = head.version == .http1_0
        let asksForUpgrade = head.headers.contains(name: "Upgrade") || head.method == .CONNECT
        if isOld || asksForUpgrade && (requests > 1 || !accepts(head)) {
            head.headers.remove(name: "Upgrade")
            head.headers.replaceOrAdd(name: "Connection", value: "close")
            if lastRequest == nil { (lastRequest, lastIsOld) = (requests, isOld) }
        }
        context.fireChannelRead(wrapInboundOut(.head(head)))
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard case .head(var head) = unwrapOutboundIn(data), head.status.code >= 200 else {
            return context.write(data, promise: promise)
        }
        responses += 1
        if responses == lastRequest {
            head.headers.replaceOrAdd(name: "Connection", value: "close")
            if lastIsOld { head.version = .http1_0 }
        }
        context.write(wrapOutboundOut(.head(head)), promise: promise)
    }

    /// Turns `http://host/path` into `/path` and the header Host, as RFC 9112 demands of a server.
    private static func removeAuthority(_ head: inout HTTPRequestHead) {
        guard let end = head.uri.firstRange(of: "://"),
            ["http", "https"].contains(head.uri[..<end.lowerBound].lowercased())
        else { return }
        let authority = head.uri[end.upperBound...].prefix { $0 != "/" && $0 != "?" }
        guard !authority.isEmpty else { return }
        let path = head.uri[authority.endIndex...]
        head.headers.replaceOrAdd(name: "Host", value: String(authority))
        head.uri = path.hasPrefix("/") ? String(path) : "/" + path
    }
}
