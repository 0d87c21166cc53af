import CoordinationBase

/// Handlers of messages by their types, which are compared by their bytes.
struct HandlerTable<Input: Sendable>: Sendable {
    typealias Handler = @Sendable (Input) async throws -> Void

    private var handlers: [ByteName: Handler] = [:]
    /// The handler of all other messages.
    var others: Handler?

    /// Sets the handler of a type.
    mutating func set(_ type: String, _ handler: @escaping Handler) { handlers[ByteName(type)] = handler }

    /// - Throws: `.undecodable` if there is no handler.
    func handler(of message: ReceivedMessage, in mailbox: String) throws(QueueListenError) -> Handler {
        if let handler = message.type.flatMap({ handlers[ByteName($0)] }) ?? others { return handler }
        throw QueueListenError(
            .undecodable,
            "message \(message.index) of \"\(mailbox)\" has the type \"\(message.type ?? "")\", which has no handler: "
                + "add one, or use handleOthers")
    }
}
