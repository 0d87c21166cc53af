/// Binary data in the notation of Lua's struct library, which the scripts use for their arguments
/// and replies.
struct PackedBytes {
    private(set) var bytes: [UInt8] = []

    /// `B`
    mutating func byte(_ value: UInt8) { bytes.append(value) }

    /// `H`, little-endian.
    mutating func uint16(_ value: Int) {
        withUnsafeBytes(of: UInt16(value).littleEndian) { bytes += $0 }
    }

    /// `I6`, little-endian. Larger values become the largest that fits.
    mutating func uint48(_ value: Int) {
        withUnsafeBytes(of: UInt64(min(max(0, value), 1 << 48 - 1)).littleEndian) { bytes += $0.prefix(6) }
    }

    /// `d`, little-endian. Numbers are exact up to 2^53.
    mutating func number(_ value: Int) {
        withUnsafeBytes(of: Double(value).bitPattern.littleEndian) { bytes += $0 }
    }

    /// `c8`: an epoch, a tag or a fingerprint.
    mutating func uint64(_ value: UInt64) { withUnsafeBytes(of: value.bigEndian) { bytes += $0 } }

    /// The bytes themselves.
    mutating func raw(_ value: some Sequence<UInt8>) { bytes += value }

    /// `c8dc8`
    mutating func cursor(_ cursor: Cursor) {
        uint64(cursor.epoch)
        number(cursor.index)
        uint64(cursor.tag)
    }
}

/// Reads binary data from front to back. Every method returns `nil` when there are not enough bytes
/// left.
struct ByteReader {
    var rest: ArraySlice<UInt8>

    init(_ bytes: some Sequence<UInt8>) { rest = ArraySlice(bytes) }

    mutating func bytes(_ count: Int) -> ArraySlice<UInt8>? {
        guard rest.count >= count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return rest.prefix(count)
    }

    /// An unsigned number, little-endian.
    mutating func integer(size: Int) -> Int? {
        bytes(size)?.reversed().reduce(0) { $0 << 8 | Int($1) }
    }

    /// `d`, little-endian, as a whole number.
    mutating func number() -> Int? {
        guard let bytes = bytes(8) else { return nil }
        let bits = bytes.reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return Int(exactly: Double(bitPattern: bits).rounded(.down))
    }

    /// `Hc0`
    mutating func word() -> ArraySlice<UInt8>? { integer(size: 2).flatMap { bytes($0) } }

    /// `c8`: an epoch or a tag.
    mutating func uint64() -> UInt64? { bytes(8).flatMap { UInt64(bigEndianBytes: $0) } }

    /// `c8dc8`
    mutating func cursor() -> Cursor? {
        guard let epoch = uint64(), let index = number(), let tag = uint64() else { return nil }
        return Cursor(epoch: epoch, index: index, tag: tag)
    }
}
