import Foundation

/// The SplitMix64 generator, whose sequence depends only on its seed (Steele, Lea and Flood, 2014).
struct RandomSource: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }

    /// Returns true with a probability in percent.
    mutating func isHit(percent: Int) -> Bool { Int.random(in: 0..<100, using: &self) < percent }

    /// Returns an element of a collection that is not empty.
    mutating func pick<Elements: Collection>(_ elements: Elements) -> Elements.Element {
        elements.randomElement(using: &self)!
    }

    /// The seed of a random test: the value of the environment variable `REDISDC_SEED`, or a random
    /// one. It is printed, so that a failed run can be repeated.
    static func seed(of test: String = #function) -> UInt64 {
        let seed =
            ProcessInfo.processInfo.environment["REDISDC_SEED"].flatMap(UInt64.init) ?? .random(in: 0..<1_000_000)
        FileHandle.standardError.write(Data("\(test): REDISDC_SEED=\(seed)\n".utf8))
        return seed
    }
}
