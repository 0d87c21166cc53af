import Foundation
import NIOCore

/// Forwards the events of one of a link's two channels to the link.
final class ProxyHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let link: ProxyLink
    private let side: ProxyLink.Side
    private var wasReset = false

    init(link: ProxyLink, side: ProxyLink.Side) {
        self.link = link
        self.side = side
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        self.link.received(Self.unwrapInboundIn(data), from: self.side)
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        self.link.lane(from: self.side).readIfWanted()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .inputClosed = event as? ChannelEvent { self.link.inputClosed(self.side) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if (error as? IOError)?.errnoCode == ECONNRESET { self.wasReset = true }
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.link.closed(self.side, byReset: self.wasReset)
    }
}

/// Creates the link for a client's channel when the channel becomes active, or closes the channel.
final class ProxyEntryHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer

    private let state: ProxyState

    init(state: ProxyState) {
        self.state = state
    }

    func channelActive(context: ChannelHandlerContext) {
        guard let link = self.state.accepted(context.channel) else { return context.close(promise: nil) }
        let pipeline = context.pipeline.syncOperations
        do {
            try pipeline.addHandler(ProxyHandler(link: link, side: .client))
            pipeline.removeHandler(self, promise: nil)
        } catch {
            context.close(promise: nil)
        }
    }
}
