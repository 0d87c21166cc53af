#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// Reads a mailbox and calls a handler for each message, by its type, one after the other.
///
/// ```swift
/// var receiver = GatewayReceiver(client) { gap in try await reloadState() }
/// receiver.handle(Move.self) { move, message in await game.play(move) }
/// receiver.handle(type: "chat") { message in await show(message.text) }
/// try await receiver.run()
/// ```
///
/// A message is acknowledged when its handler has returned. After a crash between a handler's effect
/// and the acknowledgement the message comes again, under the same id: handlers should be
/// idempotent.
public struct GatewayReceiver: Sendable {
    /// Handles a message. If it throws, ``run(after:)`` throws the error, unless ``onFailure(_:)``
    /// has set what to do.
    public typealias Handler = @Sendable (GatewayMessage) async throws -> Void

    private let client: GatewayClient
    private let onGap: @Sendable (GatewayGap) async throws -> Void
    private var handlers: [String: Handler] = [:]
    private var others: Handler?
    private var failed: (@Sendable (any Error, GatewayMessage) async throws -> Void)?

    /// Creates a receiver without handlers. Nothing is sent before ``run(after:)``.
    ///
    /// - Parameter onGap: called when messages may be missing. An error that it throws ends
    ///   ``run(after:)``.
    public init(_ client: GatewayClient, onGap: @escaping @Sendable (GatewayGap) async throws -> Void) {
        self.client = client
        self.onGap = onGap
    }

    /// Sets the handler for the messages of a type. It replaces an earlier one.
    public mutating func handle(type: String, _ handler: @escaping Handler) { handlers[type] = handler }

    /// Sets the handler for the messages of the type that a payload declares. It replaces an earlier
    /// one.
    ///
    /// A message that cannot be decoded is a failure, with the code `.invalidContent`.
    public mutating func handle<Payload: GatewayPayload>(
        _ payload: Payload.Type, decoder: JSONDecoder = JSONDecoder(),
        _ handler: @escaping @Sendable (Payload, GatewayMessage) async throws -> Void
    ) {
        handle(type: Payload.messageType) { message in
            try await handler(try message.decode(decoder: decoder), message)
        }
    }

    /// Sets the handler for messages of all other types and without a type. Without it they are
    /// acknowledged.
    public mutating func handleOthers(_ handler: @escaping Handler) { others = handler }

    /// Sets what to do when a handler throws. If this function returns, the message is acknowledged;
    /// if it throws, ``run(after:)`` throws its error.
    public mutating func onFailure(_ handler: @escaping @Sendable (any Error, GatewayMessage) async throws -> Void) {
        failed = handler
    }

    /// Receives messages until a newer reader of the device has begun, the task is cancelled, or a
    /// failure occurs.
    ///
    /// Acknowledges what was handled before it returns or throws, if this takes no more than two
    /// seconds.
    ///
    /// - Parameter cursor: as for ``GatewayClient/messages(after:)``.
    /// - Throws: the codes of ``GatewayClient/messages(after:)``; the errors of handlers.
    public func run(after cursor: String? = nil) async throws {
        let acknowledger = Acknowledger(client)
        let result: Result<Void, any Error>
        do {
            for try await event in client.messages(after: cursor) {
                switch event {
                case .message(let message): try await handle(message)
                case .gap(let gap): try await onGap(gap)
                case .superseded: break
                }
                if let cursor = event.cursor { acknowledger.add(cursor) }
            }
            result = .success(())
        } catch { result = .failure(error) }
        await acknowledger.finish(within: .seconds(2))
        try result.get()
    }

    private func handle(_ message: GatewayMessage) async throws {
        guard let handler = message.type.flatMap({ handlers[$0] }) ?? others else { return }
        do { try await handler(message) } catch {
            guard !Task.isCancelled, let failed else { throw error }
            try await failed(error, message)
        }
    }
}
