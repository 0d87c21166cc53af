/// Pauses between attempts: doubling from the least to the greatest, each with "full jitter" (a random part of it), so
/// that many clients do not come back in the same moment.
struct Backoff {
    private let range: ClosedRange<Duration>
    private var attempt = 0

    init(_ range: ClosedRange<Duration>) { self.range = range }

    mutating func reset() { attempt = 0 }

    /// The first pause is short for all, as most breaks are.
    mutating func next(using generator: inout some RandomNumberGenerator) -> Duration {
        var ceiling = range.lowerBound
        for _ in 0..<min(attempt, 32) where ceiling < range.upperBound { ceiling = ceiling * 2 }
        ceiling = min(ceiling, range.upperBound, .maxBackoff)
        attempt += 1
        return ceiling * Double.random(in: 0.5...1, using: &generator)
    }

    mutating func next() -> Duration {
        var generator = SystemRandomNumberGenerator()
        return next(using: &generator)
    }
}
