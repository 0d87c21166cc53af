/// An element of a mailbox's list: `<c1I6c8I6I6I6Bc0` in the notation of Lua's struct library,
/// followed by the envelope.
struct StoredMessage {
    /// Whether only the place of the message is left, because a later one with its collapse key has
    /// replaced it.
    var isEmpty: Bool
    var index: Int
    var tag: UInt64
    /// The time at which the message was sent: milliseconds since 1970 by the server's clock.
    var sent: Int
    /// The time at which it expires: milliseconds since 1970 by the server's clock; 0 for never.
    var expires: Int
    var collapseKey: String?
    var envelope: ArraySlice<UInt8>

    /// The offsets of the fields, in bytes. Between expiry and collapse key is the running sum of
    /// bytes, which only the scripts use.
    private enum Offset {
        static let kind = 0
        static let index = 1
        static let tag = 7
        static let sent = 15
        static let expires = 21
        static let keyLength = 33
        static let key = 34
    }

    /// Decodes an element; `nil` if the bytes are not in the format.
    init?(_ bytes: [UInt8]) {
        guard bytes.count >= Offset.key else { return nil }
        let kind = bytes[Offset.kind]
        guard kind == UInt8(ascii: "M") || kind == UInt8(ascii: "X") else { return nil }
        func number(_ offset: Int) -> Int { (0..<6).reduce(0) { $0 | Int(bytes[offset + $1]) << (8 * $1) } }
        let end = Offset.key + Int(bytes[Offset.keyLength])
        guard bytes.count >= end, let tag = UInt64(bigEndianBytes: bytes[Offset.tag..<Offset.sent]) else { return nil }
        isEmpty = kind == UInt8(ascii: "X")
        index = number(Offset.index)
        self.tag = tag
        sent = number(Offset.sent)
        expires = number(Offset.expires)
        collapseKey = end > Offset.key ? String(decoding: bytes[Offset.key..<end], as: UTF8.self) : nil
        envelope = bytes[end...]
    }
}
