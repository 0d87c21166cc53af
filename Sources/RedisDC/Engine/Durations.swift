// Conversions and limits of durations.

extension Duration {
    /// 100 years. Clocks cannot add, or sleep for, everything that a duration can express; a longer wait waits this long.
    static let longest = Duration.seconds(36_525 * 86400)

    var wholeMicroseconds: Int {
        let (seconds, attoseconds) = components
        return Int(seconds) * 1_000_000 + Int(attoseconds / 1_000_000_000_000)
    }
}
