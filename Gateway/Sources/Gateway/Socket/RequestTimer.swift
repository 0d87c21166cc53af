import NIOCore
import NIOHTTPTypes

/// Closes a connection whose next request does not arrive in time: a client that sends its header or body byte by byte must
/// not keep a connection.
final class RequestTimer: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    private let (headerTime, bodyTime): (TimeAmount, TimeAmount)
    private var timer: Scheduled<Void>?
    /// The number of requests whose response has not ended.
    private var requests = 0
    private var isReadingBody = false

    /// - Parameters:
    ///   - headerTime: the limit from the end of the last response to the end of a header.
    ///   - bodyTime: the limit from there to the end of the body.
    init(headerTime: Duration, bodyTime: Duration) {
        (self.headerTime, self.bodyTime) = (TimeAmount(headerTime), TimeAmount(bodyTime))
    }

    func handlerRemoved(context: ChannelHandlerContext) { stop() }

    func channelInactive(context: ChannelHandlerContext) {
        stop()
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head:
            requests += 1
            isReadingBody = true
            start(bodyTime, context)
        case .body: break
        case .end:
            isReadingBody = false
            awaitHeader(context)
        }
        context.fireChannelRead(data)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        if case .end = unwrapOutboundIn(data) {
            requests -= 1
            // A response may end before the body of its request.
            if !isReadingBody { awaitHeader(context) }
        }
        context.write(data, promise: promise)
    }

    private func awaitHeader(_ context: ChannelHandlerContext) {
        if requests == 0 { start(headerTime, context) } else { stop() }
    }

    private func start(_ limit: TimeAmount, _ context: ChannelHandlerContext) {
        stop()
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
