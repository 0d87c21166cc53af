// Checksums that are the same in each run, which Swift's are not.

/// A checksum of 64 bits of a sequence of numbers and byte strings. It is not made against attackers.
struct Mixer {
    private(set) var value: UInt64

    init(seed: UInt64 = 0) { value = seed ^ 0x9E37_79B9_7F4A_7C15 }

    /// Adds a number.
    mutating func mix(_ number: UInt64) {
        let (high, low) = (value ^ number).multipliedFullWidth(by: 0xD6E8_FEB8_6659_FD93)
        value = (high ^ low) &+ 0x9E37_79B9_7F4A_7C15
        value ^= value >> 29
    }

    /// Adds a byte string.
    mutating func mix(_ bytes: Bytes) {
        mix(UInt64(bytes.count))
        bytes.array.withUnsafeBytes { memory in
            var index = 0
            while index + 8 <= memory.count {
                mix(memory.loadUnaligned(fromByteOffset: index, as: UInt64.self))
                index += 8
            }
            var rest: UInt64 = 0
            while index < memory.count {
                rest = rest << 8 | UInt64(memory[index])
                index += 1
            }
            mix(rest)
        }
    }
}
