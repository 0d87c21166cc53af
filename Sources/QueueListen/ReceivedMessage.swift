#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// A message that was received from a mailbox.
public struct ReceivedMessage: Sendable, Hashable {
    /// The message's place in the mailbox: 1, 2, 3 and so on, in the order in which messages were
    /// sent. After a failover that has lost the end of the mailbox, later messages can have indices
    /// that others had before.
    public let index: Int
    /// Identifies the message among all messages. It is the same when the message is delivered
    /// again: a handler that must not act twice compares ids. Empty for a message that another
    /// program sent without an id.
    public let id: String
    /// The kind of the message, as the sender has named it; `nil` if the sender has not.
    public let type: String?
    /// The content.
    public let body: [UInt8]
    /// The sender's headers.
    public let headers: [String: String]
    /// The collapse key with which the message was sent.
    public let collapseKey: String?
    /// The time at which Redis stored the message, by its clock, to the millisecond.
    public let sent: Date
    /// The position after the message. Passing it to the next `listen` acknowledges this message
    /// and all before it.
    public let cursor: Cursor
    /// Where the answer goes, if this is a question: see ``PostOffice/ask(_:to:timeout:)``.
    let answerAddress: AnswerAddress?
    /// The question, if this is an answer.
    let answers: AnsweredQuestion?

    /// Whether somebody has asked this, and may wait for an answer.
    public var isQuestion: Bool { answerAddress != nil }

    /// Whether whoever has asked this has certainly stopped to wait. The clocks of machines differ, but not by an hour.
    var isForgotten: Bool {
        guard let answerAddress else { return true }
        return sent.addingTimeInterval(Double(answerAddress.patience) / 1000 + 3600) < Date()
    }

    /// The body as text. Bytes that are not UTF-8 become replacement characters.
    public var text: String { String(decoding: body, as: UTF8.self) }

    /// Returns the body as a value, decoded from JSON.
    ///
    /// - Parameter decoder: configures the decoding, to match the encoder of the sender.
    /// - Throws: `.undecodable`, with the decoder's error as ``QueueListenError/underlying``.
    public func decode<Value: Decodable>(
        as type: Value.Type = Value.self, decoder: JSONDecoder = JSONDecoder()
    ) throws(QueueListenError) -> Value {
        do { return try decoder.decode(type, from: Data(body)) } catch {
            throw QueueListenError(
                .undecodable,
                "message \(index) (\(self.type.map { "type \"\($0)\"" } ?? "no type")) is not a \(type): \(error)",
                underlying: error)
        }
    }

    init(_ stored: StoredMessage, epoch: UInt64) {
        let content = Envelope.decode(stored.envelope)
        index = stored.index
        id = content.id
        type = content.type
        body = content.body
        headers = content.headers
        collapseKey = stored.collapseKey
        (answerAddress, answers) = (content.answerAddress, content.answers)
        sent = Date(timeIntervalSince1970: Double(stored.sent) / 1000)
        cursor = Cursor(epoch: epoch, index: stored.index, tag: stored.tag)
    }
}
