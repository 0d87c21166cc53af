/// The pauses between attempts: each ceiling is twice the last, up to a maximum, and each pause is
/// a random length between half of the ceiling and all of it, so that many clients do not return in
/// the same moment.
struct Backoff {
    private let range: ClosedRange<Duration>
    private var attempt = 0

    init(_ range: ClosedRange<Duration>) { self.range = range }

    /// Makes the next pause a short one again.
    mutating func reset() { attempt = 0 }

    /// Returns the next pause. The first one is short, because most interruptions are.
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
