#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// A message to send: text, bytes or JSON, with a type that tells receivers how to handle it.
public struct OutgoingMessage: Sendable, Hashable {
    /// The content.
    public var content: GatewayMessage.Content
    /// The kind of the message. At most 255 bytes.
    public var type: String?
    /// At most 62. Names that begin with `gateway-` are reserved.
    public var headers: [String: String] = [:]
    /// The age at which the message expires, from 1 ms; `nil` keeps it for as long as the mailbox
    /// does.
    public var ttl: Duration?
    /// A later message with the same key replaces this one while it is in the mailbox.
    public var collapseKey: String?

    /// Creates a message from text.
    public init(text: String, type: String? = nil) {
        content = .text(text)
        self.type = type
    }

    /// Creates a message from bytes.
    public init(bytes: [UInt8], type: String? = nil) {
        content = .bytes(bytes)
        self.type = type
    }

    /// Creates a message from a value, encoded as JSON.
    ///
    /// - Parameters:
    ///   - type: the kind of the message; `nil` for a message without a type.
    ///   - encoder: configures the encoding of dates, keys and so on.
    /// - Throws: `.invalidContent`, with the encoder's error as ``GatewayError/underlying``.
    public init(json value: some Encodable, type: String?, encoder: JSONEncoder = JSONEncoder()) throws(GatewayError) {
        do { content = .json(Array(try encoder.encode(value))) } catch {
            throw GatewayError(.invalidContent, "the content cannot be encoded", underlying: error)
        }
        self.type = type
    }

    /// Creates a message of the type that a payload declares.
    ///
    /// - Throws: `.invalidContent`, with the encoder's error as ``GatewayError/underlying``.
    public init<Payload: GatewayPayload>(_ payload: Payload, encoder: JSONEncoder = JSONEncoder()) throws(GatewayError)
    {
        try self.init(json: payload, type: Payload.messageType, encoder: encoder)
    }

    /// The message as docs/http.md describes it.
    var text: [UInt8] {
        let (name, value): (String, [UInt8]) =
            switch content {
            case .json(let text): ("json", text)
            case .text(let text): ("text", RawJSON.string(text))
            case .bytes(let bytes): ("base64", RawJSON.string(Data(bytes).base64EncodedString()))
            }
        let headers = headers.sorted { $0.key < $1.key }.map { ($0.key, Optional(RawJSON.string($0.value))) }
        return RawJSON.object([
            ("type", type.map { RawJSON.string($0) }),
            ("headers", headers.isEmpty ? nil : RawJSON.object(headers)),
            ("ttl", ttl.map { Array("\($0.milliseconds)".utf8) }),
            ("collapse", collapseKey.map { RawJSON.string($0) }),
            (name, value),
        ])
    }
}

extension Duration {
    /// The whole milliseconds.
    var milliseconds: Int {
        Int(components.seconds) * 1000 + Int(components.attoseconds / 1_000_000_000_000_000)
    }
}
