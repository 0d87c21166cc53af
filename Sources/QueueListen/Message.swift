// What is sent.
#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A message to be sent: text, bytes or any `Codable` value, with a type by which receivers tell it from others.
///
/// ```swift
/// Message("hello")
/// Message(bytes: picture, type: "image/png")
/// try Message(Move(from: "e2", to: "e4"))           // its type is "Move"
/// ```
public struct Message: Sendable, Hashable {
    /// What it is, for a ``Receiver`` to tell by: at most 255 bytes without control characters.
    public var type: String?
    /// Any bytes, also none. Most bytes of a message: ``PostOfficeConfiguration/maxMessageBytes``.
    public var body: [UInt8]
    /// Names have 1 to 255 bytes without control characters or `=`; values at most 4096 without control characters.
    public var headers: [String: String]
    /// How long it is worth delivering, from 1 ms; `nil`: as long as the mailbox keeps it. Afterwards it is passed over,
    /// and counted in ``Delivery/skipped``.
    public var ttl: Duration?
    /// A later message with the same key takes the place of this one while it waits: it is passed over then, and counted in
    /// ``Delivery/skipped``. 1 to 255 bytes without control characters.
    public var collapseKey: String?

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

    public init(
        _ text: String, type: String? = nil, headers: [String: String] = [:], ttl: Duration? = nil,
        collapseKey: String? = nil
    ) {
        self.init(
            bytes: Array(text.utf8), type: type, headers: headers, ttl: ttl, collapseKey: collapseKey)
    }

    /// A value as JSON.
    ///
    /// - Parameter type: by default the name of the value's type.
    /// - Throws: what encoding throws.
    public init<Value: Encodable>(
        _ value: Value, type: String? = nil, headers: [String: String] = [:], ttl: Duration? = nil,
        collapseKey: String? = nil
    ) throws {
        self.init(
            bytes: [UInt8](try JSONEncoder().encode(value)), type: type ?? "\(Value.self)", headers: headers,
            ttl: ttl, collapseKey: collapseKey)
    }

    func validate(largest: Int) throws(QueueListenError) {
        if let type { try MailName.validate(line: type, "type", longest: 255) }
        if let collapseKey {
            guard !collapseKey.isEmpty else { throw QueueListenError(.invalidArgument, "a collapse key is not empty") }
            try MailName.validate(line: collapseKey, "collapse key", longest: 255)
        }
        if let ttl, ttl < .milliseconds(1) {
            throw QueueListenError(.invalidArgument, "ttl is \(ttl), expected at least 1 ms")
        }
        guard body.count <= largest else {
            throw QueueListenError(.invalidArgument, "a body of \(body.count) bytes, expected at most \(largest)")
        }
        guard headers.count <= 64 else {
            throw QueueListenError(.invalidArgument, "\(headers.count) headers, expected at most 64")
        }
        for (name, value) in headers {
            guard !name.isEmpty, !name.utf8.contains(UInt8(ascii: "=")) else {
                throw QueueListenError(.invalidArgument, "a header's name is not empty and has no \"=\": \"\(name)\"")
            }
            try MailName.validate(line: name, "header's name", longest: 255)
            try MailName.validate(line: value, "header's value", longest: 4096)
        }
    }
}
