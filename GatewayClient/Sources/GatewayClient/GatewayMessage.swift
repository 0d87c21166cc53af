#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// A message that was received from a mailbox.
public struct GatewayMessage: Sendable, Hashable {
    /// The content of a message, as its sender gave it.
    public enum Content: Sendable, Hashable {
        /// The text of a JSON value, with the digits of its numbers as they were sent.
        case json([UInt8])
        /// A text.
        case text(String)
        /// Bytes that are not UTF-8.
        case bytes([UInt8])
    }

    /// The position after the message: acknowledge it, or resume after it.
    public let cursor: String
    /// The message's place in the mailbox: 1, 2, 3 and so on.
    public let index: Int
    /// Identifies the message among all messages; empty if another program sent it without one. A
    /// message that is delivered again has the same id.
    public let id: String
    /// The kind of the message; `nil` if the sender gave none.
    public let type: String?
    /// The sender, as the gateway has authenticated it; `nil` if it was not sent through a gateway.
    public let from: String?
    /// The time at which Redis stored the message, in milliseconds since 1970.
    public let sent: Int
    /// The sender's headers.
    public let headers: [String: String]
    /// The content.
    public let content: Content

    /// The content as bytes: the UTF-8 of a text or of JSON.
    public var body: [UInt8] {
        switch content {
        case .json(let bytes), .bytes(let bytes): bytes
        case .text(let text): Array(text.utf8)
        }
    }

    /// The content as text. Bytes that are not UTF-8 become replacement characters.
    public var text: String {
        if case .text(let text) = content { text } else { String(decoding: body, as: UTF8.self) }
    }

    /// Returns the content as a value, decoded from JSON.
    ///
    /// - Parameter decoder: configures the decoding, to match the encoder of the sender.
    /// - Throws: `.invalidContent`, with the decoder's error as ``GatewayError/underlying``.
    public func decode<Value: Decodable>(
        as type: Value.Type = Value.self, decoder: JSONDecoder = JSONDecoder()
    ) throws(GatewayError) -> Value {
        do { return try decoder.decode(type, from: Data(body)) } catch {
            throw GatewayError(
                .invalidContent,
                "message \(index) (\(self.type.map { "type \"\($0)\"" } ?? "no type")) is not a \(type)",
                underlying: error)
        }
    }
}

/// Messages as the gateway writes them.
extension GatewayMessage {
    /// All fields but the content as JSON.
    private struct Fields: Decodable {
        var cursor: String
        var index: Int
        var id: String
        var type: String?
        var from: String?
        var sent: Int
        var headers: [String: String]?
        var text: String?
        var base64: Data?
    }

    /// Reads a message.
    ///
    /// - Throws: `.unexpectedReply`.
    init(_ text: RawJSON.Text) throws(GatewayError) {
        let fields: Fields
        do { fields = try JSONDecoder().decode(Fields.self, from: Data(text)) } catch {
            throw GatewayError(.unexpectedReply, "a message is not complete", underlying: error)
        }
        guard !fields.cursor.isEmpty else { throw GatewayError(.unexpectedReply, "a message has no cursor") }
        if let text = fields.text {
            content = .text(text)
        } else if let data = fields.base64 {
            content = .bytes(Array(data))
        } else if let json = RawJSON.members(of: text)?["json"] {
            content = .json(Array(json))
        } else {
            throw GatewayError(.unexpectedReply, "a message has no content")
        }
        (cursor, index, id, type) = (fields.cursor, fields.index, fields.id, fields.type)
        (from, sent, headers) = (fields.from, fields.sent, fields.headers ?? [:])
    }
}
