/// The slot of a key in a cluster.
enum HashSlot {
    static let count = 16384

    /// Returns the slot of a key: CRC16 (XMODEM) of the key, or of its hash tag if it has one, modulo
    /// 16384.
    ///
    /// The hash tag is what stands between the first `{` and the next `}`, unless it is empty. Keys
    /// with the same hash tag are in the same slot.
    static func of(_ key: String) -> Int {
        var key = key
        return key.withUTF8 { of($0) }
    }

    static func of(_ key: some Collection<UInt8>) -> Int {
        if let open = key.firstIndex(of: UInt8(ascii: "{")) {
            let inside = key[key.index(after: open)...]
            if let close = inside.firstIndex(of: UInt8(ascii: "}")), close != inside.startIndex {
                return checksum(inside[..<close]) % count
            }
        }
        return checksum(key) % count
    }

    private static func checksum(_ bytes: some Sequence<UInt8>) -> Int {
        Int(bytes.reduce(UInt16(0)) { ($0 << 8) ^ table[Int(UInt8($0 >> 8) ^ $1)] })
    }

    private static let table: [UInt16] = (0..<256).map { byte in
        (0..<8).reduce(UInt16(byte) << 8) { rest, _ in rest & 0x8000 == 0 ? rest << 1 : (rest << 1) ^ 0x1021 }
    }
}
