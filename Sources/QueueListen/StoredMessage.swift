/// A message as it is in a mailbox's list. In the notation of Lua's struct library, the first element
/// is `<BI6I6I6c8`: kind, index, running sum of bytes (only the scripts use it), time when sent, tag.
/// The second is `<I6Bc0`, time to live and collapse key, followed by the envelope.
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

    /// Decodes the two elements of a message; `nil` if they are not in the format.
    init?(head: [UInt8], body: [UInt8]) {
        var reader = ByteReader(head)
        let sumSize = 6
        guard let kind = reader.bytes(1)?.first, kind == UInt8(ascii: "M") || kind == UInt8(ascii: "X"),
            let index = reader.integer(size: 6), reader.bytes(sumSize) != nil, let sent = reader.integer(size: 6),
            let tag = reader.uint64()
        else { return nil }
        reader = ByteReader(body)
        guard let life = reader.integer(size: 6), let keySize = reader.integer(size: 1), let key = reader.bytes(keySize)
        else { return nil }
        isEmpty = kind == UInt8(ascii: "X")
        self.index = index
        self.tag = tag
        self.sent = sent
        expires = life == 0 ? 0 : sent + life
        collapseKey = key.isEmpty ? nil : String(decoding: key, as: UTF8.self)
        envelope = reader.rest
    }
}
