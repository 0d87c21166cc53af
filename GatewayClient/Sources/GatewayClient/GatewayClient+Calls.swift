// The calls of a session.
import AsyncHTTPClient

extension GatewayClient {
    /// Sends messages to one or more mailboxes: all receive them, or none.
    ///
    /// - Parameters:
    ///   - messages: 1 to 768, in order.
    ///   - recipients: 1 to 256 users.
    ///   - id: identifies the send, 1 to 128 bytes. After an error with `mayHaveRun`, send again with
    ///     the same id and content: the messages arrive once.
    ///   - timeout: the maximum time with all attempts. Default:
    ///     ``GatewayClientConfiguration/callTimeout``.
    /// - Throws: `.forbidden`, `.idUsed`, `.mailboxFull`, `.tooLarge`, `.malformed`, and what every
    ///   call throws: `.unknownSession`, `.loggedInElsewhere`, `.badSignature`, `.stale`,
    ///   `.nonceUsed`, `.tooManyRequests`, `.unavailable`, `.internal`, `.network`,
    ///   `.unexpectedReply`, `.cancelled`.
    @discardableResult
    public func send(
        _ messages: [OutgoingMessage], to recipients: [String], id: String? = nil, timeout: Duration? = nil
    ) async throws(GatewayError) -> SendReceipt {
        try await perform(
            SendCall(recipients: recipients, id: id ?? RequestSigner.randomText(), messages: messages.map(\.text)),
            timeout: timeout)
    }

    /// Sends a message to one or more mailboxes: all receive it, or none. See
    /// ``send(_:to:id:timeout:)-(Array<OutgoingMessage>,_,_,_)``.
    @discardableResult
    public func send(
        _ message: OutgoingMessage, to recipients: [String], id: String? = nil, timeout: Duration? = nil
    ) async throws(GatewayError) -> SendReceipt {
        try await send([message], to: recipients, id: id, timeout: timeout)
    }

    /// Sends a value as a message of the type that it declares. See
    /// ``send(_:to:id:timeout:)-(Array<OutgoingMessage>,_,_,_)``.
    ///
    /// - Throws: also `.invalidContent`, if the value cannot be encoded.
    @discardableResult
    public func send(
        _ payload: some GatewayPayload, to recipients: [String], id: String? = nil, timeout: Duration? = nil
    ) async throws(GatewayError) -> SendReceipt {
        try await send([try OutgoingMessage(payload)], to: recipients, id: id, timeout: timeout)
    }

    /// Makes a call of the application: `POST` with JSON.
    ///
    /// The call is repeated when its reply is lost, so its effect must be the same however often it
    /// comes: most have an id in their content.
    ///
    /// - Parameters:
    ///   - path: the path at the gateway, beginning with `/`.
    ///   - content: a value that is a JSON object.
    ///   - reply: the type of the reply.
    ///   - timeout: see ``send(_:to:id:timeout:)-(Array<OutgoingMessage>,_,_,_)``.
    /// - Throws: `.refused` with the application's ``GatewayError/reason``, `.invalidContent` if the
    ///   value cannot be encoded, `.unexpectedReply` if the reply is not of the type; and what every
    ///   call throws, see ``send(_:to:id:timeout:)-(Array<OutgoingMessage>,_,_,_)``.
    public func call<Reply: Decodable & Sendable>(
        _ path: String, _ content: some Encodable & Sendable, reply: Reply.Type = Reply.self, timeout: Duration? = nil
    ) async throws(GatewayError) -> Reply {
        try await perform(ApplicationCall<Reply>(target: path, content), timeout: timeout)
    }

    /// Acknowledges all messages up to a position: this device has processed them.
    ///
    /// - Throws: `.cursor` if the position is not, or no longer, in the mailbox, which is of no
    ///   consequence after a later acknowledgement; and what every call throws, see
    ///   ``send(_:to:id:timeout:)-(Array<OutgoingMessage>,_,_,_)``.
    public func acknowledge(_ cursor: String, timeout: Duration? = nil) async throws(GatewayError) {
        try await perform(AcknowledgeCall(cursor: cursor), timeout: timeout)
    }

    /// Ends the session, and forgets the device: messages are no longer kept for it. Does nothing if
    /// the session has ended.
    ///
    /// - Throws: what every call throws, see
    ///   ``send(_:to:id:timeout:)-(Array<OutgoingMessage>,_,_,_)``.
    public func logOut(timeout: Duration? = nil) async throws(GatewayError) {
        do throws(GatewayError) { try await perform(LogoutCall(), timeout: timeout) } catch {
            guard error.code == .unknownSession else { throw error }
        }
        note(GatewayError(.unknownSession, "this session was logged out"))
    }

    /// Repeats a call until it has a reply.
    private func perform<C: Call>(_ call: C, timeout: Duration?) async throws(GatewayError) -> C.Reply {
        let retrying = Retrying(nodes: nodes, configuration: configuration, environment: environment)
        return try await retrying.run(timeout: timeout) { node, limit throws(GatewayError) in
            try await self.reply(to: call, at: node, within: limit)
        }
    }

    /// Sends a call to a node once, and reads its reply.
    func reply<C: Call>(to call: C, at node: String, within limit: Duration) async throws(GatewayError) -> C.Reply {
        let response = try await open(call.method, call.target, body: call.body, at: node, within: limit)
        return try call.reply(try await exchange.collect(response, within: limit))
    }
}
