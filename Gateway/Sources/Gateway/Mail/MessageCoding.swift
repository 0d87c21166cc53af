import Crypto
import QueueListen

// Messages as clients see them, and as they are stored.
#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The headers that the gateway adds to messages. Clients cannot set them.
enum ReservedHeader {
    static let prefix = "gateway-"
    /// The prefix of the headers of a dead letter, by which an operator sends it to a mailbox again.
    static let deadLetterPrefix = "dead-letter-"
    /// The user who sent the message, as the gateway has authenticated it.
    static let from = "gateway-from"
    /// `json`, `text` or `base64`: the field in which the client sent the content.
    static let content = "gateway-content"

    /// Returns the prefix by which clients cannot set a header; `nil` if they can. Upper case makes no difference.
    static func prefix(of name: String) -> String? {
        let lowerCase = name.lowercased()
        return [prefix, deadLetterPrefix].first { lowerCase.hasUTF8Prefix($0) }
    }
}

extension String {
    /// Whether the text begins with the bytes of a prefix. `hasPrefix` compares characters, of which the last one of the
    /// prefix may be another one in the text, with a combining mark.
    func hasUTF8Prefix(_ prefix: String) -> Bool { utf8.starts(with: prefix.utf8) }

    /// A name in a post office for what a client names: the same text of two users is two names. The length separates the
    /// user from the text.
    func owned(by user: String) -> String {
        "gw-" + SHA256.hash(data: Array("\(user.utf8.count):\(user):\(self)".utf8)).hexadecimal
    }
}

extension JSON {
    /// A message on its way to a client: the same on every transport.
    init(_ message: ReceivedMessage) {
        let headers = message.headers.filter { !$0.key.hasUTF8Prefix(ReservedHeader.prefix) }.sorted { $0.key < $1.key }
        let json: JSON = [
            "cursor": .string(message.cursor.description), "index": JSON(message.index), "id": .string(message.id),
        ]
        self = json.with(
            ("type", message.type.map { .string($0) }),
            ("from", message.headers[ReservedHeader.from].map { .string($0) }),
            ("sent", JSON(Int((message.sent.timeIntervalSince1970 * 1000).rounded()))),
            ("headers", .object(headers.map { Member(name: $0.key, value: .string($0.value)) })),
            Self.content(of: message))
    }

    /// The content in the field in which it was sent; as text or Base64 if that is not possible or not known.
    private static func content(of message: ReceivedMessage) -> (String, JSON?) {
        let form = message.headers[ReservedHeader.content]
        if form == "json", let value = try? JSONParser.parse(message.body) { return ("json", value) }
        if form != "base64", let text = String(validating: message.body, as: UTF8.self) {
            return ("text", .string(text))
        }
        return ("base64", .string(Data(message.body).base64EncodedString()))
    }
}

extension Message {
    /// Reads a message that a client sends.
    ///
    /// - Throws: `malformed`.
    init(_ json: JSON, sender: String) throws(Problem) {
        guard json.members != nil else { throw Problem(.malformed, "a message is an object") }
        let (form, body) = try Self.content(of: json)
        var headers: [String: String] = [:]
        for header in json["headers"]?.members ?? [] {
            guard let value = header.value.string else { throw Problem(.malformed, "the value of a header is a text") }
            if let prefix = ReservedHeader.prefix(of: header.name) {
                throw Problem(.malformed, "headers that begin with \(prefix) are reserved")
            }
            guard headers.updateValue(value, forKey: header.name) == nil else {
                throw Problem(.malformed, "two names of headers are the same text in different encodings")
            }
        }
        if let given = json["headers"], given.members == nil { throw Problem(.malformed, "\"headers\" is an object") }
        headers[ReservedHeader.from] = sender
        headers[ReservedHeader.content] = form
        var ttl: Duration?
        if let given = json["ttl"] {
            guard let milliseconds = given.integer, (1...1 << 47).contains(milliseconds) else {
                throw Problem(.malformed, "\"ttl\" is a number of milliseconds, from 1")
            }
            ttl = .milliseconds(milliseconds)
        }
        self.init(
            bytes: body, type: try Self.text("type", of: json), headers: headers, ttl: ttl,
            collapseKey: try Self.collapseKey(of: json, sender: sender))
    }

    /// The key in the mailbox: the same key of two users is two keys, so that nobody replaces messages of others.
    private static func collapseKey(of json: JSON, sender: String) throws(Problem) -> String? {
        guard let key = try text("collapse", of: json) else { return nil }
        guard (1...255).contains(key.utf8.count) else {
            throw Problem(.malformed, "\"collapse\" has 1 to 255 bytes, this one has \(key.utf8.count)")
        }
        return key.owned(by: sender)
    }

    private static func text(_ name: String, of json: JSON) throws(Problem) -> String? {
        guard let value = json[name] else { return nil }
        guard let text = value.string else { throw Problem(.malformed, "\"\(name)\" is a text") }
        return text
    }

    private static func content(of json: JSON) throws(Problem) -> (form: String, body: [UInt8]) {
        switch (json["json"], json["text"], json["base64"]) {
        case (let value?, nil, nil): return ("json", value.bytes)
        case (nil, .string(let text)?, nil): return ("text", Array(text.utf8))
        case (nil, nil, .string(let text)?):
            guard let data = Data(base64Encoded: text) else { throw Problem(.malformed, "\"base64\" is not Base64") }
            return ("base64", [UInt8](data))
        default: throw Problem(.malformed, "a message has exactly one of the fields json, text and base64")
        }
    }
}
