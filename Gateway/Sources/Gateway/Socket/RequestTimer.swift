import HTTPTypes
import NIOCore
import NIOHTTPTypes

/// Closes a connection whose next request does not arrive in time: a client that sends its header or body byte by byte must
/// not keep a connection. Also closes one whose request is answered before its body has arrived.
final class RequestTimer: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    private let (headerTime, bodyTime): (TimeAmount, TimeAmount)
    private let reader: TurnReader
    private var timer: Scheduled<Void>?
    /// The number of requests whose response has not ended.
    private var requests = 0
    private var isReadingBody = false
    /// The bytes of the body that have not arrived; `nil` if its length is not announced.
    private var restBytes: Int?
    /// The announced length of the body, or the number of bytes that have arrived of one in chunks.
    private var bodyBytes = 0
    /// Whether the connection ends with the response that has begun, because the body of its request is not wanted.
    private var isLast = false
    /// Whether that response has ended.
    private var hasEnded = false

    /// - Parameters:
    ///   - headerTime: the limit from the end of the last response to the end of a header.
    ///   - bodyTime: the limit from there to the end of the body.
    ///   - reader: reads long bodies in turns, and discards what arrives after the last response.
    init(headerTime: Duration, bodyTime: Duration, reader: TurnReader) {
        (self.headerTime, self.bodyTime) = (TimeAmount(headerTime), TimeAmount(bodyTime))
        self.reader = reader
    }

    func handlerRemoved(context: ChannelHandlerContext) { stop() }

    func channelInactive(context: ChannelHandlerContext) {
        stop()
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case _ where hasEnded: return
        case .head(let head):
            requests += 1
            isReadingBody = true
            let length = head.headerFields[.contentLength].flatMap { Int($0) }
            restBytes = length ?? (head.headerFields[.transferEncoding] == nil ? 0 : nil)
            bodyBytes = restBytes ?? 0
            beginIfLong()
            start(bodyTime, context)
        case .body(let bytes):
            if let rest = restBytes { restBytes = rest - bytes.readableBytes } else { bodyBytes += bytes.readableBytes }
            beginIfLong()
        case .end:
            isReadingBody = false
            reader.endBody()
            awaitHeader(context)
        }
        context.fireChannelRead(data)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        switch unwrapOutboundIn(data) {
        case .head(var head) where head.status.code >= 200 && isBodyUnwanted:
            isLast = true
            head.headerFields[.connection] = "close"
            return context.write(wrapOutboundOut(.head(head)), promise: promise)
        case .end:
            requests -= 1
            if isLast { return writeLast(data, promise, context) }
            // A response may end before the body of its request.
            if !isReadingBody { awaitHeader(context) }
        default: break
        }
        context.write(data, promise: promise)
    }

    /// Whether the response that begins is that of the request whose body arrives, and too much of the body is missing to
    /// wait for it.
    private var isBodyUnwanted: Bool {
        isReadingBody && requests == 1 && (restBytes ?? .max) > GatewayConfiguration.maxDiscardedBytes
    }

    private func writeLast(_ end: NIOAny, _ promise: EventLoopPromise<Void>?, _ context: ChannelHandlerContext) {
        hasEnded = true
        reader.discard()
        let channel = context.channel
        let written = promise ?? context.eventLoop.makePromise()
        context.write(end, promise: written)
        channel.closeLater()
        written.futureResult.whenComplete { _ in channel.closeOutput() }
    }

    private func beginIfLong() {
        if bodyBytes > GatewayConfiguration.maxReadBytes { reader.beginLongBody() }
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
