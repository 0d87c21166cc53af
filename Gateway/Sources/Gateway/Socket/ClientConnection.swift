import HTTPTypes
import NIOCore
import NIOHTTPTypes
import Synchronization

/// The connection of the request that the current task handles: it knows when the client has gone.
final class ClientConnection: Sendable {
    /// `nil` if the gateway's routes are served by another server than ``Gateway/server()``.
    @TaskLocal static var current: ClientConnection?

    let channel: any Channel
    /// Comes when the client closes its connection, or its half of it.
    let closing = EndSignal<Void>()
    fileprivate let isEncoded = Atomic(false)

    init(_ channel: any Channel) { self.channel = channel }

    /// Whether the body of the response that has begun is encoded, by a middleware that compresses for example: then nothing
    /// can be written beside it.
    var hasEncodedBody: Bool {
        // The event loop has seen the head before.
        get async throws { try await channel.eventLoop.submit { self.isEncoded.load(ordering: .relaxed) }.get() }
    }

    /// Runs an operation, and calls a function when the client closes its connection meanwhile, or its half of it.
    static func whileOpen<Result>(
        onClose function: @escaping @Sendable () -> Void, _ operation: () async throws -> Result
    ) async rethrows -> Result {
        guard let current else { return try await operation() }
        return try await current.closing.whileOpen(onEnd: { function() }, operation)
    }

    /// Runs an operation that is cancelled when the client closes its connection, or its half of it, and by the function
    /// that it receives.
    static func cancelling<Result: Sendable>(
        _ operation: (_ cancel: @escaping @Sendable () -> Void) async throws -> Result
    ) async throws -> Result {
        try await withCancelling { cancel in
            try await whileOpen(onClose: cancel) { try await operation(cancel) }
        }
    }
}

/// Notices that a client closes its connection, or its half of it, and whether the body of a response is encoded.
///
/// The sequence of a request's parts tells the former too, but to one reader only, which then cannot read the next request.
final class ClientConnectionHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    private let connection: ClientConnection

    init(_ connection: ClientConnection) { self.connection = connection }

    func channelInactive(context: ChannelHandlerContext) {
        connection.closing.end(())
        context.fireChannelInactive()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case ChannelEvent.inputClosed? = event as? ChannelEvent { connection.closing.end(()) }
        context.fireUserInboundEventTriggered(event)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        if case .head(let head) = unwrapOutboundIn(data) {
            connection.isEncoded.store(head.headerFields[.contentEncoding] != nil, ordering: .relaxed)
        }
        context.write(data, promise: promise)
    }
}
