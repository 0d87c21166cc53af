import CoordinationBase

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

#if ServiceLifecycleSupport
    public import ServiceLifecycle
#endif

/// Reads a mailbox and calls a handler for each message, by its type, one after the other.
///
/// ```swift
/// var receiver = Receiver(try office.mailbox("alice")) { gap in try await reloadState() }
/// receiver.handle(Move.self, type: "move") { move, message in await game.play(move) }
/// receiver.handle(type: "chat") { message in show(message.text) }
/// try await receiver.run()
/// ```
///
/// - Messages are handled one at a time, in order: the next message follows when the handler has
///   returned.
/// - A message that is delivered twice is handled once, as long as ``run()`` continues and the
///   message is among the last 4,096.
/// - When the process dies between the handler's effect and the saving of the cursor, the message
///   is handled again by the next process, under the same id. A ``CursorStore`` that saves the
///   cursor together with the effect prevents this.
/// - A message whose type has no handler is a failure, unless ``handleOthers(_:)`` has set a
///   handler.
/// - It is a service: list it behind the client and the post office, so that it ends first in a
///   graceful shutdown.
public struct Receiver: Sendable {
    /// Handles a message. If it throws, the ``FailurePolicy`` decides what happens.
    public typealias Handler = @Sendable (ReceivedMessage) async throws -> Void

    private let mailbox: Mailbox
    private let device: String
    private let store: (any CursorStore)?
    private let policy: FailurePolicy
    private let onGap: @Sendable (MailboxGap) async throws -> Void
    private var table = HandlerTable<ReceivedMessage>()

    private var clock: MonotonicClock { mailbox.office.clock }

    /// Creates a receiver without handlers. Nothing is sent before ``run()``.
    ///
    /// - Parameters:
    ///   - mailbox: the mailbox to read.
    ///   - device: as for ``Mailbox/listen(after:device:limit:maxBytes:timeout:)``.
    ///   - store: where the cursor is saved. `nil`: in the mailbox, as the position that this
    ///     device has acknowledged.
    ///   - policy: what happens when a handler throws.
    ///   - onGap: called when messages may be missing. An error that it throws ends ``run()``.
    public init(
        _ mailbox: Mailbox, device: String = Mailbox.defaultDevice, store: (any CursorStore)? = nil,
        onFailure policy: FailurePolicy = .retry(), onGap: @escaping @Sendable (MailboxGap) async throws -> Void
    ) {
        self.mailbox = mailbox
        self.device = device
        self.store = store
        self.policy = policy
        self.onGap = onGap
    }

    // MARK: Handlers

    /// Sets the handler for the messages of a type, which is compared by its bytes. It replaces an earlier one.
    public mutating func handle(type: String, _ handler: @escaping Handler) { table.set(type, handler) }

    /// Sets the handler for the messages of a type, decoded from JSON. It replaces an earlier one.
    ///
    /// A message that cannot be decoded is a failure, with the code `.undecodable`.
    ///
    /// - Parameters:
    ///   - value: the type of the values.
    ///   - type: the messages' type, as in
    ///     ``Message/init(json:type:headers:ttl:collapseKey:encoder:)``.
    ///   - decoder: configures the decoding, to match the encoder of the sender.
    public mutating func handle<Value: Decodable & Sendable>(
        _ value: Value.Type, type: String, decoder: JSONDecoder = JSONDecoder(),
        _ handler: @escaping @Sendable (Value, ReceivedMessage) async throws -> Void
    ) {
        handle(type: type) { message in try await handler(try message.decode(decoder: decoder), message) }
    }

    /// Sets the handler for messages of all other types and without a type.
    ///
    /// A message without a handler fails at once, whatever the ``FailurePolicy``: it is dead-lettered,
    /// or ``run()`` throws `.undecodable`.
    public mutating func handleOthers(_ handler: @escaping Handler) { table.others = handler }

    // MARK: Run

    /// Receives messages until the task is cancelled, a graceful shutdown begins, or an error
    /// occurs that the policy does not cover.
    ///
    /// A graceful shutdown interrupts the wait for messages and the pause before another attempt,
    /// but not a handler. A handler that is running returns; then its message is acknowledged, and
    /// `run()` returns. If that handler throws, and the policy would call it again, its message is
    /// not acknowledged and is delivered again to the next run. Apart from that no message is lost
    /// or handled twice.
    ///
    /// A cancelled task interrupts the handler too. Its message is delivered again if the handler
    /// throws.
    ///
    /// - Throws: `.cancelled`; `.superseded` when a newer reader uses the same device; the
    ///   handler's error with ``FailurePolicy/stop(afterAttempts:pause:)``; the codes of
    ///   `PostOffice.send` when a dead letter cannot be sent; the errors of `onGap` and of the
    ///   store; `.stopped`, `.invalidArgument`, `.wrongType`, `.notPermitted`, `.conflict` and
    ///   `.serverError` from reading; `.connectionLost` and `.notConnected` when the last message
    ///   cannot be acknowledged in a graceful shutdown.
    public func run() async throws {
        var seen = SeenMessages(capacity: 4096)
        var reader = MailboxReader(mailbox, device: device, after: try await store?.load(), limit: 100)
        /// The position after the last handled message.
        var handled: Cursor?
        reading: while !Self.isShuttingDown, let event = try await nextEvent(&reader) {
            switch event {
            case .gap(let gap):
                handled = nil
                try await onGap(gap)
            case .message(let message):
                if !seen.contains(message.id) {
                    guard try await handle(message) else { break reading }
                    seen.insert(message.id)
                }
                try await store?.save(message.cursor)
                handled = message.cursor
            }
        }
        if let handled { try await mailbox.acknowledge(handled, device: device) }
    }

    /// Returns the next event; `nil` when a graceful shutdown has begun.
    private func nextEvent(_ reader: inout MailboxReader) async throws -> MailboxEvent? {
        if let message = try await reader.nextInPage() { return .message(message) }
        while true {
            let page = try await Self.unlessShuttingDown { [reader] in try await reader.nextPage() }
            guard let page else { return nil }
            if let event = try reader.receive(page) { return event }
        }
    }

    /// Calls the handler until it returns or the policy says otherwise.
    ///
    /// - Returns: `false` if a graceful shutdown has ended the attempts.
    private func handle(_ message: ReceivedMessage) async throws -> Bool {
        var attempt = 1
        var pause = policy.pause.lowerBound
        let handler = table.handler(of: message)
        while true {
            do {
                guard let handler else { throw HandlerTable<ReceivedMessage>.missing(for: message, in: mailbox.name) }
                try await handler(message)
                return true
            } catch {
                if Task.isCancelled { throw QueueListenError(.cancelled, "the task was cancelled", underlying: error) }
                mailbox.office.instruments.handlerFailed(attempt: attempt)
                // Without a handler, further attempts would fail in the same way.
                if handler == nil || attempt >= policy.attempts ?? .max {
                    guard case .deadLetter(let deadLetterMailbox) = policy.end else { throw error }
                    try await sendDeadLetter(message, to: deadLetterMailbox, error)
                    try? await mailbox.office.fail(message, "\(error)")
                    return true
                }
            }
            attempt += 1
            let currentPause = pause
            do {
                let hasPaused: Void? = try await Self.unlessShuttingDown { [clock] in
                    try await clock.sleep(currentPause)
                }
                if hasPaused == nil { return false }
            } catch {
                throw QueueListenError(.cancelled, "the task was cancelled")
            }
            pause = min(pause * 2, policy.pause.upperBound)
        }
    }

    private func sendDeadLetter(
        _ message: ReceivedMessage, to deadLetterMailbox: String, _ error: any Error
    ) async throws(QueueListenError) {
        var headers = message.headers
        headers["dead-letter-mailbox"] = mailbox.name
        headers["dead-letter-index"] = "\(message.index)"
        headers["dead-letter-id"] = message.id
        headers["dead-letter-reason"] = String(
            String.UnicodeScalarView("\(error)".unicodeScalars.filter { $0.properties.generalCategory != .control })
                .prefix(500))
        // The id is derived from the message's position and the device: sending it again has no effect.
        try await mailbox.office.send(
            Message(bytes: message.body, type: message.type, headers: headers), to: deadLetterMailbox,
            id: "dead-\(message.cursor)-\(device)")
    }

    // MARK: Graceful shutdown

    private static var isShuttingDown: Bool {
        #if ServiceLifecycleSupport
            Task.isShuttingDownGracefully
        #else
            false
        #endif
    }

    /// Calls `body`, which is cancelled when a graceful shutdown begins.
    ///
    /// - Returns: `nil` if a graceful shutdown has cancelled `body`.
    private static func unlessShuttingDown<Value: Sendable>(
        _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value? {
        #if ServiceLifecycleSupport
            do { return try await cancelWhenGracefulShutdown(body) } catch {
                guard isShuttingDown, !Task.isCancelled else { throw error }
                return nil
            }
        #else
            return try await body()
        #endif
    }
}

#if ServiceLifecycleSupport
    /// A graceful shutdown ends ``run()`` after the handler that is running.
    extension Receiver: Service {}
#endif
