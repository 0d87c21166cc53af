// POST /v1/send, and the frame `send` of a WebSocket: sends messages to mailboxes.
import Hummingbird
import Logging
import QueueListen

/// A send, as a client asks for it.
struct SendCall: Sendable {
    var id: String
    var recipients: [String]
    var messages: [Message]

    /// Reads the body of a send, and stamps the sender on its messages.
    ///
    /// - Throws: `malformed`, `too-large`.
    init(_ json: JSON, sender: String) throws(Problem) {
        guard let id = json["id"]?.string, (1...128).contains(id.utf8.count) else {
            throw Problem(.malformed, "a send has an id of 1 to 128 bytes")
        }
        guard let names = json["to"]?.array, (1...256).contains(names.count),
            !names.contains(where: { $0.string == nil })
        else { throw Problem(.malformed, "\"to\" is an array of 1 to 256 names") }
        guard let messages = json["messages"]?.array, !messages.isEmpty else {
            throw Problem(.malformed, "\"messages\" is an array of 1 or more messages")
        }
        self.id = id
        recipients = names.compactMap(\.string)
        self.messages = []
        for message in messages { self.messages.append(try Message(message, sender: sender)) }
        let bytes = self.messages.reduce(0) { sum, message in
            message.headers.reduce(sum + message.body.count) { $0 + $1.key.utf8.count + $1.value.utf8.count }
        }
        // By bytes, as the mailboxes distinguish them: Swift compares texts by canonical equivalence.
        guard bytes * Set(recipients.map { Array($0.utf8) }).count <= 1 << 20 else {
            throw Problem(
                .tooLarge, "the messages have \(bytes) bytes; times the recipients at most 1,048,576 are allowed")
        }
    }
}

/// The id of a send, and for each mailbox the indices that its messages have there.
struct SendReply: Reply {
    var id: String
    var receipt: Receipt

    var json: JSON {
        let indices = receipt.indices.sorted { $0.key < $1.key }.map { name, range in
            JSON.Member(name: name, value: [JSON(range.lowerBound), JSON(range.upperBound)])
        }
        return ["id": .string(id), "indices": .object(indices)]
    }
}

extension Gateway {
    func send(_ request: Request, context: SessionContext<some RequestContext>) async throws -> SendReply {
        try await send(try JSON(body: context.body, of: request), from: context.session)
    }

    /// Sends a client's messages, if the application allows it.
    func send(_ json: JSON, from session: Session) async throws -> SendReply {
        let call = try SendCall(json, sender: session.user)
        try await checkIsAllowed(call, session)
        let receipt = try await office.send(call.messages, to: call.recipients, id: call.id.owned(by: session.user))
        return SendReply(id: call.id, receipt: receipt)
    }

    private func checkIsAllowed(_ call: SendCall, _ session: Session) async throws {
        let attempt = SendAttempt(
            sender: session.user, device: session.device, recipients: call.recipients, types: call.messages.map(\.type))
        let isAllowed: Bool
        do { isAllowed = try await authorize(attempt) } catch {
            logger.error("the authorization failed", metadata: ["error": "\(error)"])
            throw Problem.unavailable("the send cannot be checked at present", mayHaveRun: false)
        }
        guard isAllowed else { throw Problem(.forbidden, "the application does not allow this send") }
    }
}
