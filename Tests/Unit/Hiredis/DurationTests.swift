import Testing

@testable import Hiredis

@Suite("A duration")
struct DurationTests {
    private static let longest = [Duration.seconds(Int64.max), .seconds(Int64.max) * 18, .maxWait, .maxTTL]

    @Test("in nanoseconds is rounded towards zero")
    func nanoseconds() {
        #expect(Duration.seconds(1).nanoseconds == 1_000_000_000)
        #expect(Duration(secondsComponent: 2, attosecondsComponent: 1_999_999_999).nanoseconds == 2_000_000_001)
        #expect(Duration.nanoseconds(-5).nanoseconds == -5)
        #expect(Duration.nanoseconds(Int64.max).nanoseconds == .max)
    }

    @Test("in nanoseconds ends where 64 bits end")
    func saturation() {
        #expect((Duration.nanoseconds(Int64.max) + .nanoseconds(1)).nanoseconds == .max)
        #expect(Duration.seconds(Int64.max).nanoseconds == .max)
        #expect(Duration.seconds(Int64.min).nanoseconds == .min)
        #expect(Duration.maxWait.nanoseconds == 36_525 * 86_400 * 1_000_000_000)
    }

    @Test("in microseconds is rounded towards zero")
    func microseconds() {
        #expect(Duration.milliseconds(1500).wholeMicroseconds == 1_500_000)
        #expect(Duration.nanoseconds(1999).wholeMicroseconds == 1)
        #expect(Duration.maxWait.wholeMicroseconds == 36_525 * 86_400 * 1_000_000)
    }

    @Test("in milliseconds is rounded towards zero, and fits into 6 bytes as a time since 1970")
    func milliseconds() {
        #expect(Duration.seconds(90).wholeMilliseconds == 90_000)
        #expect(Duration.microseconds(1999).wholeMilliseconds == 1)
        #expect(Duration.zero.wholeMilliseconds == 0)
        for duration in Self.longest {
            #expect(duration.wholeMilliseconds > 0)
            #expect(duration.wholeMilliseconds <= (1 << 37) * 1000)
            #expect(duration.wholeMilliseconds + 4_000_000_000_000 < 1 << 48)
        }
    }

    @Test("in milliseconds for a server's timeout is rounded up")
    func roundedUp() {
        #expect(Duration.nanoseconds(1).millisecondsRoundedUp == 1)
        #expect(Duration.milliseconds(1).millisecondsRoundedUp == 1)
        #expect(Duration.microseconds(1001).millisecondsRoundedUp == 2)
        for duration in Self.longest { #expect(duration.millisecondsRoundedUp <= (1 << 40) * 1000) }
    }

    @Test("in seconds is rounded to the millisecond")
    func seconds() {
        #expect(Duration.microseconds(1_234_499).secondsToTheMillisecond == 1.234)
        #expect(Duration.microseconds(1_234_500).secondsToTheMillisecond == 1.235)
        #expect(Duration.zero.secondsToTheMillisecond == 0)
    }

    @Test("of any limit can be slept for, or added to a reading of a clock")
    func limits() {
        #expect(ContinuousClock.now + Duration.maxWait > .now)
        let sleeping = Task { try await Task.sleep(for: .maxSleep) }
        sleeping.cancel()
        #expect(Duration.maxBackoff < .maxSleep)
    }
}
