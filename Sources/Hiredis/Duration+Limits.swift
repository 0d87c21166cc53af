// Durations as the numbers that servers, clocks and metrics take, and the longest ones that each of them can handle.
//
// A Duration holds up to 292,000,000,000 years. Clocks, sleeps and Redis trap on or refuse much shorter ones, so a longer
// duration is replaced by a limit that nobody will notice.

extension Duration {
    /// 100 years: the longest that is added to a reading of a clock. `ContinuousClock` and a session's end count
    /// nanoseconds in 64 bits, which overflow after 292 years.
    package static let maxWait = Duration.seconds(36_525 * 86_400)

    /// 31 years: the longest sleep. `Task.sleep` traps on a time whose nanoseconds, added to the clock's, exceed 64 bits.
    package static let maxSleep = Duration.seconds(1_000_000_000)

    /// A day: the longest pause between attempts to connect, whatever is configured. It bounds the doubling.
    package static let maxBackoff = Duration.seconds(86_400)

    /// 34,800 years: the longest timeout of a blocking command. Its milliseconds, added to the server's time, fit into the
    /// 64 bits of the server; a larger number would be refused.
    package static let maxServerTimeout = Duration.seconds(1 << 40)

    /// 4,355 years: the longest time to live that is stored. Its milliseconds, added to those since 1970, fit into the 6
    /// bytes that a mailbox's record has for a time.
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
