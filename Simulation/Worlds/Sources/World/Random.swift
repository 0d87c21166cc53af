// The one source of chance in a world.

/// The SplitMix64 generator: the same seed gives the same numbers.
struct Random: RandomNumberGenerator {
    private var state: UInt64
    /// Whether all times are the shortest ones, and nothing unlikely happens: then something else decides.
    private let isFixed: Bool

    init(seed: UInt64, isFixed: Bool = false) { (state, self.isFixed) = (seed, isFixed) }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// Returns true in one of `count` cases.
    mutating func isOne(in count: Int) -> Bool { !isFixed && Int.random(in: 0..<count, using: &self) == 0 }

    /// Returns a time in a range, small ones more often than large ones.
    mutating func time(_ range: ClosedRange<Int64>) -> Int64 {
        if isFixed { return range.lowerBound }
        let exponent = Double.random(in: 0...1, using: &self)
        let span = Double(range.upperBound - range.lowerBound)
        return range.lowerBound + Int64(span * exponent * exponent * exponent)
    }
}
