import NIOCore

/// The connection of the request that the current task handles: it knows when the client has gone.
enum ClientConnection {
    /// `nil` if the gateway's routes are served by another server than ``Gateway/server()``.
    @TaskLocal static var closing: EndSignal<Void>?
    /// The event loop of the connection; `nil` as for ``closing``.
    @TaskLocal static var eventLoop: (any EventLoop)?

    /// Runs an operation, and calls a function when the client closes its connection meanwhile, or its half of it.
    static func whileOpen<Result>(
        onClose function: @escaping @Sendable () -> Void, _ operation: () async throws -> Result
    ) async rethrows -> Result {
        guard let closing else { return try await operation() }
        return try await closing.whileOpen(onEnd: { function() }, operation)
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

/// Notices that a client closes its connection, or its half of it.
///
/// The sequence of a request's parts tells it too, but to one reader only, which then cannot read the next request.
final class ClosingHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = NIOAny

    private let closing: EndSignal<Void>

    init(_ closing: EndSignal<Void>) { self.closing = closing }

    func channelInactive(context: ChannelHandlerContext) {
        closing.end(())
        context.fireChannelInactive()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case ChannelEvent.inputClosed? = event as? ChannelEvent { closing.end(()) }
        context.fireUserInboundEventTriggered(event)
    }
}
