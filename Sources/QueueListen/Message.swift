#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// A message to send: text, bytes or JSON, with a type that tells receivers how to handle it.
///
/// ```swift
/// Message(text: "hello")
/// Message(bytes: picture, type: "image/png")
/// try Message(json: Move(from: "e2", to: "e4"), type: "move")
/// ```
public struct Message: Sendable, Hashable {
    /// The kind of the message, by which a ``Receiver`` selects the handler. At most 255 bytes
    /// without control characters.
    public var type: String?
    /// The content, which may be empty. At most ``PostOfficeConfiguration/maxMessageBytes``.
    public var body: [UInt8]
    /// At most 64. Names have 1 to 255 bytes without control characters and `=`, values at most
    /// 4,096 bytes without control characters.
    public var headers: [String: String]
    /// The age at which the message expires, from 1 ms; `nil` delivers it for as long as the
    /// mailbox keeps it. An expired message is skipped, and counted in ``Delivery/skipped``.
    public var ttl: Duration?
    /// A later message with the same key replaces this one while it is in the mailbox. The replaced
    /// message is skipped, and counted in ``Delivery/skipped``. 1 to 255 bytes without control
    /// characters.
    ///
    /// The key belongs to the mailbox, whoever sends: where senders must not replace messages of one
    /// another, the key contains the sender's name.
    public var collapseKey: String?
    /// Workers run jobs with the same key one at a time, in the order in which they were sent: see
    /// ``Mailbox/work(_:_:)``. 1 to 255 bytes without control characters. Readers ignore it.
    public var orderKey: String?
    /// Where the answer goes, if this is a question.
    var answerAddress: AnswerAddress?
    /// The question, if this is an answer.
    var answers: AnsweredQuestion?

    /// Creates a message from bytes.
    ///
    /// Nothing is validated until the message is sent.
    public init(
        bytes: [UInt8], type: String? = nil, headers: [String: String] = [:], ttl: Duration? = nil,
        collapseKey: String? = nil
    ) {
        body = bytes
        self.type = type
        self.headers = headers
        self.ttl = ttl
        self.collapseKey = collapseKey
    }

    /// Creates a message from text.
    ///
    /// Nothing is validated until the message is sent.
    public init(
        text: String, type: String? = nil, headers: [String: String] = [:], ttl: Duration? = nil,
        collapseKey: String? = nil
    ) {
        self.init(
            bytes: Array(text.utf8), type: type, headers: headers, ttl: ttl, collapseKey: collapseKey)
    }

    /// Creates a message from a value, encoded as JSON.
    ///
    /// - Parameters:
    ///   - type: the kind of the message. It has no default, because it is part of the protocol
    ///     between senders and receivers and must not change when a Swift type is renamed. Pass
    ///     `nil` for a message without a type.
    ///   - encoder: configures the encoding of dates, keys and so on. The receiver decodes
    ///     accordingly: see ``ReceivedMessage/decode(as:decoder:)``.
    /// - Throws: the error of the encoder.
    public init(
        json value: some Encodable, type: String?, headers: [String: String] = [:], ttl: Duration? = nil,
        collapseKey: String? = nil, encoder: JSONEncoder = JSONEncoder()
    ) throws {
        self.init(
            bytes: [UInt8](try encoder.encode(value)), type: type, headers: headers, ttl: ttl, collapseKey: collapseKey)
    }

    /// The number of bytes that are sent: body, type, headers, keys, and what belongs to a question or an answer.
    var size: Int {
        body.count + (type?.utf8.count ?? 0) + (collapseKey?.utf8.count ?? 0) + (orderKey?.utf8.count ?? 0)
            + (answerAddress?.line.utf8.count ?? 0) + (answers?.line.utf8.count ?? 0)
            + headers.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count }
    }

    /// - Throws: `.invalidArgument`, with what is wrong and what is expected.
    func validate(maxBodyBytes: Int) throws(QueueListenError) {
        if let type { try MailName.validate(line: type, "type", maxBytes: 255) }
        if let collapseKey {
            guard !collapseKey.isEmpty else {
                throw QueueListenError(.invalidArgument, "a collapse key is not empty: pass nil for none")
            }
            try MailName.validate(line: collapseKey, "collapse key", maxBytes: 255)
        }
        if let orderKey {
            guard !orderKey.isEmpty else {
                throw QueueListenError(.invalidArgument, "an order key is not empty: pass nil for none")
            }
            try MailName.validate(line: orderKey, "order key", maxBytes: 255)
        }
        if let ttl, ttl < .milliseconds(1) {
            throw QueueListenError(.invalidArgument, "ttl is \(ttl), expected at least 1 ms")
        }
        guard body.count <= maxBodyBytes else {
            throw QueueListenError(
                .invalidArgument,
                "a message's body has \(body.count) bytes, expected at most \(maxBodyBytes): "
                    + "raise PostOfficeConfiguration.maxMessageBytes (at most \(PostOfficeConfiguration.maxMessageBytesLimit)), "
                    + "or split the message")
        }
        guard headers.count <= 64 else {
            throw QueueListenError(.invalidArgument, "a message has \(headers.count) headers, expected at most 64")
        }
        for (name, value) in headers {
            guard !name.isEmpty, !name.utf8.contains(UInt8(ascii: "=")) else {
                throw QueueListenError(
                    .invalidArgument, "a header's name is not empty and contains no \"=\", this one is \"\(name)\"")
            }
            try MailName.validate(line: name, "header's name", maxBytes: 255)
            try MailName.validate(line: value, "header's value", maxBytes: 4096)
        }
    }
}
