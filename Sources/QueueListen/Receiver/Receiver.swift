// Hands messages to handlers by their types, in order, each once.

/// Reads a mailbox and hands each message to the handler for its type.
///
/// ```swift
/// var receiver = Receiver(try office.mailbox("alice")) { gap in try await readEverythingElseAnew() }
/// receiver.handle(Move.self) { move, message in await game.play(move) }
/// receiver.handle(type: "chat") { message in show(message.text) }
/// try await receiver.run()
/// ```
///
/// - One message at a time, in order: the next one's turn comes when the handler has returned.
/// - A message that comes a second time is handed over once, as long as the receiver lives and it is among the last 4,096.
/// - When the process dies between the handler's effect and the saving of the cursor, the message comes again to the next
///   one, under the same id. A ``CursorStore`` that saves the cursor together with the effect closes that gap.
/// - A type without a handler is a failure as well, unless ``handleOthers(_:)`` takes it.
public struct Receiver: Sendable {
    public typealias Handler = @Sendable (ReceivedMessage) async throws -> Void

    private let mailbox: Mailbox
    private let device: String
    private let store: (any CursorStore)?
    private let policy: FailurePolicy
    private let onGap: @Sendable (MailboxGap) async throws -> Void
    private var handlers: [String: Handler] = [:]
    private var others: Handler?

    /// - Parameters:
    ///   - device: as for ``Mailbox/listen(after:device:limit:maxBytes:timeout:)``.
    ///   - store: where the cursor is kept. `nil`: with the mailbox, as what this device has acknowledged.
    ///   - policy: what happens when a handler throws.
    ///   - onGap: what happens when messages may be missing. What it throws ends `run()`.
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

    /// Messages of this type go here. A later handler for a type takes the place of an earlier one.
    public mutating func handle(type: String, _ handler: @escaping Handler) { handlers[type] = handler }

    /// Messages of this type go here as values, from JSON. One that is no such value is a failure.
    ///
    /// - Parameter type: by default the name of the value's type, as ``Message/init(_:type:headers:ttl:collapseKey:)``
    ///   sends it.
    public mutating func handle<Value: Decodable & Sendable>(
        _ value: Value.Type, type: String? = nil,
        _ handler: @escaping @Sendable (Value, ReceivedMessage) async throws -> Void
    ) {
        handle(type: type ?? "\(Value.self)") { message in try await handler(try message.decode(), message) }
    }

    /// Messages of all other types, and without one, go here.
    public mutating func handleOthers(_ handler: @escaping Handler) { others = handler }

    // MARK: Run

    /// Receives until the task is cancelled, or something throws that the policy does not cover.
    ///
    /// - Throws: `.cancelled`; `.superseded` when another receiver has taken over the device; what a handler throws with
    ///   ``FailurePolicy/stop(afterAttempts:pause:)``; what `onGap` and the store throw.
    public func run() async throws {
        var seen = SeenMessages(capacity: 4096)
        for try await event in mailbox.messages(after: try await store?.load(), device: device) {
            switch event {
            case .gap(let gap): try await onGap(gap)
            case .message(let message):
                if !seen.contains(message.id) {
                    try await handOver(message)
                    seen.insert(message.id)
                }
                try await store?.save(message.cursor)
            }
        }
    }

    private func handOver(_ message: ReceivedMessage) async throws {
        var attempt = 1
        var pause = policy.pause.lowerBound
        while true {
            do {
                guard let handler = message.type.flatMap({ handlers[$0] }) ?? others else {
                    throw QueueListenError(.undecodable, "no handler for the type \"\(message.type ?? "")\"")
                }
                return try await handler(message)
            } catch {
                if Task.isCancelled { throw QueueListenError(.cancelled, "the task was cancelled", underlying: error) }
                if let attempts = policy.attempts, attempt >= attempts {
                    guard case .deadLetter(let mailbox) = policy.end else { throw error }
                    return try await bury(message, in: mailbox, error)
                }
            }
            attempt += 1
            do { try await Task.sleep(for: pause) } catch {
                throw QueueListenError(.cancelled, "the task was cancelled")
            }
            pause = min(pause * 2, policy.pause.upperBound)
        }
    }

    private func bury(_ message: ReceivedMessage, in graveyard: String, _ error: any Error) async throws {
        var headers = message.headers
        headers["dead-letter-mailbox"] = mailbox.name
        headers["dead-letter-index"] = "\(message.index)"
        headers["dead-letter-id"] = message.id
        headers["dead-letter-reason"] = String(
            String.UnicodeScalarView("\(error)".unicodeScalars.filter { $0.properties.generalCategory != .control })
                .prefix(500))
        // The place and the device name this funeral: a second one has no effect.
        try await mailbox.office.send(
            Message(bytes: message.body, type: message.type, headers: headers), to: graveyard,
            id: "dead-\(message.cursor)-\(device)")
    }
}
