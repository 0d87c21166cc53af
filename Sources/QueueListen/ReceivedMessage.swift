// What is received.
#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// A message out of a mailbox.
public struct ReceivedMessage: Sendable, Hashable {
    /// Its place in the mailbox: 1, 2, 3 and so on, in the order in which they were sent.
    public let index: Int
    /// Names it among all messages: the same when it is delivered a second time. Handlers that must not act twice go by it.
    public let id: String
    public let type: String?
    public let body: [UInt8]
    public let headers: [String: String]
    public let collapseKey: String?
    /// When Redis got it, by its clock, to the millisecond.
    public let sent: Date
    /// The place behind it: passing it to the next `listen` acknowledges it and all before.
    public let cursor: Cursor

    /// The body as text; bytes that are not UTF-8 become replacement characters.
    public var text: String { String(decoding: body, as: UTF8.self) }

    /// The body as a value, from JSON.
    ///
    /// - Throws: `QueueListenError` with `.undecodable`.
    public func decode<Value: Decodable>(as type: Value.Type = Value.self) throws -> Value {
        do { return try JSONDecoder().decode(type, from: Data(body)) } catch {
            throw QueueListenError(
                .undecodable, "message \(index) (\(self.type ?? "no type")) is not a \(type): \(error)",
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
        sent = Date(timeIntervalSince1970: Double(stored.sent) / 1000)
        cursor = Cursor(epoch: epoch, index: stored.index, tag: stored.tag)
    }
}
