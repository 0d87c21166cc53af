// Random numbers from a seed.

import Foundation

/// The generator SplitMix64: equal seeds give equal numbers.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }

    /// Whether something happens that has a probability in percent.
    mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &self) < percent }

    /// One of a list.
    mutating func pick<Element>(_ list: [Element]) -> Element { list[Int.random(in: 0..<list.count, using: &self)] }

    /// The seed of the tests: that of `REDISDC_SEED`, or a new one.
    static var seedOfRun: UInt64 {
        ProcessInfo.processInfo.environment["REDISDC_SEED"].flatMap { UInt64($0) } ?? UInt64.random(in: 1...999_999)
    }
}
