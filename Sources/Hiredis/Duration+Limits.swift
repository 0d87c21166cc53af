// Conversions of durations for servers, clocks and metrics, and the longest duration that each of them can handle.
//
// A Duration holds up to 292 billion years. Clocks and sleeps trap on much shorter ones, and Redis refuses them, so a longer
// duration is replaced by one of these limits.

extension Duration {
    /// 100 years: the longest duration that is added to a clock's time. Clocks count nanoseconds in
    /// 64 bits, which overflow after 292 years.
    package static let maxWait = Duration.seconds(36_525 * 86_400)

    /// 31 years: the longest sleep. `Task.sleep` traps when the nanoseconds of its deadline exceed
    /// 64 bits.
    package static let maxSleep = Duration.seconds(1_000_000_000)

    /// A day: the longest pause between attempts to connect, whatever is configured. It keeps the
    /// doubled pause within what can be slept.
    package static let maxBackoff = Duration.seconds(86_400)

    /// 34,800 years: the longest timeout of a blocking command. Servers refuse a timeout whose
    /// milliseconds do not fit into 64 bits.
    package static let maxServerTimeout = Duration.seconds(1 << 40)

    /// 4,355 years: the longest time to live. Its milliseconds, added to those since 1970, fit into
    /// the 6 bytes that a mailbox's record has for a time.
    package static let maxTTL = Duration.seconds(1 << 37)

    /// Whole nanoseconds, rounded towards zero; `Int64.max` or `Int64.min` beyond 292 years.
    package var nanoseconds: Int64 {
        let (seconds, attoseconds) = components
        let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, carries) = whole.addingReportingOverflow(attoseconds / 1_000_000_000)
        return overflow || carries ? (seconds < 0 ? .min : .max) : sum
    }

    /// Whole microseconds, rounded towards zero. Traps beyond 292,000 years.
    package var wholeMicroseconds: Int {
        let (seconds, attoseconds) = components
        return Int(seconds) * 1_000_000 + Int(attoseconds / 1_000_000_000_000)
    }

    /// Whole milliseconds, rounded towards zero, of at most ``maxTTL``.
    package var wholeMilliseconds: Int {
        let (seconds, attoseconds) = min(self, .maxTTL).components
        return Int(seconds) * 1000 + Int(attoseconds / 1_000_000_000_000_000)
    }

    /// Whole milliseconds, rounded up, of at most ``maxServerTimeout``.
    package var millisecondsRoundedUp: Int {
        let (seconds, attoseconds) = min(self, .maxServerTimeout).components
        return Int(seconds) * 1000 + Int((attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000)
    }

    /// Seconds, rounded to the millisecond.
    package var secondsToTheMillisecond: Double { (self / .milliseconds(1)).rounded() / 1000 }
}
