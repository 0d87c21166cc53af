// Packed records, as the scripts unpack them: little-endian.

import SimulatedRedis

/// A byte string that is made of fields.
struct Packed {
    private(set) var bytes = Bytes([])

    /// A double, the letter `d`.
    func double(_ number: Double) -> Packed { adding(number.bitPattern, 8) }
    /// A double of a number.
    func double(_ number: Int64) -> Packed { double(Double(number)) }
    /// An integer of some bytes, the letters `B`, `H`, `I4` and `I6`.
    func integer(_ number: Int, _ size: Int) -> Packed { adding(UInt64(truncatingIfNeeded: number), size) }
    /// Bytes as they are, the letters `c8` and the like.
    func raw(_ text: Bytes) -> Packed { Packed(bytes: bytes + text) }
    /// Bytes after their length in two bytes, the letters `Hc0`.
    func counted(_ text: Bytes) -> Packed { integer(text.count, 2).raw(text) }

    private func adding(_ number: UInt64, _ size: Int) -> Packed {
        raw(Bytes((0..<size).map { UInt8(truncatingIfNeeded: number >> UInt64(8 * $0)) }))
    }
}
