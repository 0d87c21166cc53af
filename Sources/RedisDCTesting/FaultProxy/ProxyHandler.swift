import Foundation
import NIOCore

/// Tells a link what happens on one of its two channels.
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

/// Makes a link for a client's channel once it is active, or closes it.
final class ProxyEntryHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer

    private let board: ProxySwitchboard

    init(board: ProxySwitchboard) {
        self.board = board
    }

    func channelActive(context: ChannelHandlerContext) {
        guard let link = self.board.accepted(context.channel) else { return context.close(promise: nil) }
        let pipeline = context.pipeline.syncOperations
        do {
            try pipeline.addHandler(ProxyHandler(link: link, side: .client))
            pipeline.removeHandler(self, promise: nil)
        } catch {
            context.close(promise: nil)
        }
    }
}
