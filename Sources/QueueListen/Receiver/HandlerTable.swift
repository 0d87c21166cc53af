import CoordinationBase

/// Handlers of messages by their types, which are compared by their bytes.
struct HandlerTable<Input: Sendable>: Sendable {
    typealias Handler = @Sendable (Input) async throws -> Void

    private var handlers: [ByteName: Handler] = [:]
    /// The handler of all other messages.
    var others: Handler?

    /// Sets the handler of a type.
    mutating func set(_ type: String, _ handler: @escaping Handler) { handlers[ByteName(type)] = handler }

    func handler(of message: ReceivedMessage) -> Handler? {
        message.type.flatMap { handlers[ByteName($0)] } ?? others
    }

    /// The error about a message without a handler.
    static func missing(for message: ReceivedMessage, in mailbox: String) -> QueueListenError {
        QueueListenError(
            .undecodable,
            "message \(message.index) of \"\(mailbox)\" has the type \"\(message.type ?? "")\", which has no handler: "
                + "add one, or use handleOthers")
    }
}
