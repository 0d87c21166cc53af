// How far a reader has got in a mailbox.

/// A place in a mailbox, behind the last message that its reader has.
///
/// It prints as one opaque token, which can be kept anywhere and read back: `Cursor("…")`. It is encoded as that token too.
///
/// It names the mailbox's epoch and the message's random tag besides its index. So a mailbox that was lost and made anew,
/// or that lost its end in a failover and got other messages in its place, is told from the one that was read.
public struct Cursor: Sendable, Hashable {
    /// The index of the last message that its holder has, from 1; 0 before the first.
    public let index: Int
    let epoch: UInt64
    let tag: UInt64

    /// No place yet: listening after it is listening after none.
    public static let none = Cursor(epoch: 0, index: 0, tag: 0)

    init(epoch: UInt64, index: Int, tag: UInt64) {
        self.epoch = epoch
        self.index = index
        self.tag = tag
    }
}

extension Cursor: LosslessStringConvertible {
    /// `nil` when the text is no cursor.
    public init?(_ description: String) {
        let parts = description.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].utf8.count == 16, parts[2].utf8.count == 16,
            parts.allSatisfy({ $0.utf8.allSatisfy { Character(UnicodeScalar($0)).isHexDigit } }),
            let epoch = UInt64(parts[0], radix: 16), let tag = UInt64(parts[2], radix: 16),
            let index = Int(parts[1]), index < 1 << 48
        else { return nil }
        self.init(epoch: epoch, index: index, tag: tag)
    }

    public var description: String { "\(epoch.hexadecimal)-\(index)-\(tag.hexadecimal)" }
}

extension Cursor: Codable {
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let cursor = Cursor(try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a cursor")
        }
        self = cursor
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}

extension UInt64 {
    /// 16 digits.
    var hexadecimal: String {
        let digits = String(self, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }

    /// The 8 bytes of an epoch or a tag, as the scripts have them.
    var mark: [UInt8] { withUnsafeBytes(of: bigEndian) { Array($0) } }

    /// `nil`: not 8 bytes.
    init?(mark: some Collection<UInt8>) {
        guard mark.count == 8 else { return nil }
        self = mark.reduce(0) { $0 << 8 | UInt64($1) }
    }
}
