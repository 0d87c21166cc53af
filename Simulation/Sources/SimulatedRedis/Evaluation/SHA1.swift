// SHA-1, by which a server names scripts.

/// The SHA-1 of FIPS 180-4.
enum SHA1 {
    /// Returns the digest of bytes as 40 hexadecimal digits.
    static func hexadecimal(_ bytes: Bytes) -> Bytes {
        var state: [UInt32] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0]
        let message = padded(bytes.array)
        for start in stride(from: 0, to: message.count, by: 64) { compress(message[start..<(start + 64)], &state) }
        let digits = Array("0123456789abcdef".utf8)
        var text: [UInt8] = []
        for word in state {
            for shift in stride(from: 28, through: 0, by: -4) { text.append(digits[Int(word >> UInt32(shift)) & 15]) }
        }
        return Bytes(text)
    }

    private static func padded(_ bytes: [UInt8]) -> [UInt8] {
        var message = bytes + [0x80]
        while message.count % 64 != 56 { message.append(0) }
        let bits = UInt64(bytes.count) * 8
        for shift in stride(from: 56, through: 0, by: -8) {
            message.append(UInt8(truncatingIfNeeded: bits >> UInt64(shift)))
        }
        return message
    }

    private static func rotated(_ word: UInt32, _ count: UInt32) -> UInt32 { word << count | word >> (32 - count) }

    private static func compress(_ block: ArraySlice<UInt8>, _ state: inout [UInt32]) {
        var words = [UInt32](repeating: 0, count: 80)
        for (index, byte) in block.enumerated() { words[index / 4] = words[index / 4] << 8 | UInt32(byte) }
        for index in 16..<80 {
            words[index] = rotated(words[index - 3] ^ words[index - 8] ^ words[index - 14] ^ words[index - 16], 1)
        }
        var (a, b, c, d, e) = (state[0], state[1], state[2], state[3], state[4])
        for index in 0..<80 {
            let (mixed, constant): (UInt32, UInt32) =
                switch index {
                case ..<20: (b & c | ~b & d, 0x5A82_7999)
                case ..<40: (b ^ c ^ d, 0x6ED9_EBA1)
                case ..<60: (b & c | b & d | c & d, 0x8F1B_BCDC)
                default: (b ^ c ^ d, 0xCA62_C1D6)
                }
            let sum = rotated(a, 5) &+ mixed &+ e &+ constant &+ words[index]
            (e, d, c, b, a) = (d, c, rotated(b, 30), a, sum)
        }
        for (index, word) in [a, b, c, d, e].enumerated() { state[index] &+= word }
    }
}
