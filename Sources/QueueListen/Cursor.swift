/// A position in a mailbox: after the last message that a reader has received.
///
/// A cursor prints as an opaque token, which can be stored anywhere and read back with
/// `Cursor("…")`. It is encoded as that token too.
///
/// Besides the index it contains the mailbox's epoch and the message's random tag. They distinguish
/// the mailbox that was read from one that was created again after a loss, or that lost its end in
/// a failover and received other messages in its place.
public struct Cursor: Sendable, Hashable {
    /// The index of the last message that the reader has received, from 1; 0 before the first
    /// message.
    public let index: Int
    let epoch: UInt64
    let tag: UInt64

    /// No position. Listening after it is the same as listening without a cursor.
    public static let none = Cursor(epoch: 0, index: 0, tag: 0)

    init(epoch: UInt64, index: Int, tag: UInt64) {
        self.epoch = epoch
        self.index = index
        self.tag = tag
    }
}

extension Cursor: LosslessStringConvertible {
    /// Reads a token; `nil` if the text is not a cursor's token.
    public init?(_ description: String) {
        let parts = description.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].utf8.count == 16, parts[2].utf8.count == 16,
            parts.allSatisfy({ $0.utf8.allSatisfy { Character(UnicodeScalar($0)).isHexDigit } }),
            let epoch = UInt64(parts[0], radix: 16), let tag = UInt64(parts[2], radix: 16),
            let index = Int(parts[1]), index < 1 << 48
        else { return nil }
        self.init(epoch: epoch, index: index, tag: tag)
    }

    /// The token.
    public var description: String { "\(epoch.hexadecimal)-\(index)-\(tag.hexadecimal)" }
}

extension Cursor: Codable {
    /// Decodes a token.
    ///
    /// - Throws: `DecodingError.dataCorrupted` if the text is not a cursor's token.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        guard let cursor = Cursor(text) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a cursor: \"\(text)\"")
        }
        self = cursor
    }

    /// Encodes the token as a string.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}

extension UInt64 {
    /// 16 hexadecimal digits.
    var hexadecimal: String {
        let digits = String(self, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }

    /// The 8 bytes of an epoch or a tag, as the scripts store them.
    var bigEndianBytes: [UInt8] { withUnsafeBytes(of: bigEndian) { Array($0) } }

    /// `nil` if there are not exactly 8 bytes.
    init?(bigEndianBytes bytes: some Collection<UInt8>) {
        guard bytes.count == 8 else { return nil }
        self = bytes.reduce(0) { $0 << 8 | UInt64($1) }
    }
}
