import NIOCore
import NIOHTTPTypes

/// Closes a connection whose next request header does not arrive in time: a client that sends it byte by byte must not keep
/// a connection.
final class HeaderTimer: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    private let limit: TimeAmount
    private var timer: Scheduled<Void>?
    /// The number of requests whose response has not ended.
    private var requests = 0

    init(_ limit: Duration) { self.limit = TimeAmount(limit) }

    func handlerRemoved(context: ChannelHandlerContext) { stop() }

    func channelInactive(context: ChannelHandlerContext) {
        stop()
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if case .head = unwrapInboundIn(data) {
            requests += 1
            stop()
        }
        context.fireChannelRead(data)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        if case .end = unwrapOutboundIn(data) {
            requests -= 1
            if requests == 0 { start(context) }
        }
        context.write(data, promise: promise)
    }

    private func start(_ context: ChannelHandlerContext) {
        let channel = context.channel
        timer = context.eventLoop.scheduleTask(in: limit) { channel.close(promise: nil) }
    }

    private func stop() {
        timer?.cancel()
        timer = nil
    }
}

/// Closes a connection whose first request header does not arrive in time.
final class FirstHeaderTimer: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = NIOAny

    private let limit: TimeAmount
    private var timer: Scheduled<Void>?
    private var isStopped = false

    init(_ limit: Duration) { self.limit = TimeAmount(limit) }

    /// Must be called on the event loop.
    var loopBound: NIOLoopBound<FirstHeaderTimer> { NIOLoopBound(self, eventLoop: loop!) }
    private var loop: (any EventLoop)?

    func handlerAdded(context: ChannelHandlerContext) {
        loop = context.eventLoop
        guard !isStopped else { return }
        let channel = context.channel
        timer = context.eventLoop.scheduleTask(in: limit) { channel.close(promise: nil) }
    }

    func channelInactive(context: ChannelHandlerContext) {
        stop()
        context.fireChannelInactive()
    }

    /// The header has arrived.
    func stop() {
        isStopped = true
        timer?.cancel()
        timer = nil
    }
}
