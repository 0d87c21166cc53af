import TestRandom
import Testing

@testable import Hiredis

@Suite("Backoff")
struct BackoffTests {
    @Test("delays double from the minimum to the maximum, with a jitter of up to half", arguments: testSeeds(0..<20))
    func bounds(seed: UInt64) {
        var generator = SplitMix(seed: seed)
        var backoff = Backoff(.milliseconds(50)...(.seconds(5)))
        var ceiling = Duration.milliseconds(50)
        for _ in 0..<100 {
            let pause = backoff.next(using: &generator)
            #expect(pause <= ceiling)
            #expect(pause >= ceiling / 2 - .nanoseconds(1))
            ceiling = min(ceiling * 2, .seconds(5))
        }
    }

    @Test("delays differ between clients")
    func jitter() {
        var pauses = Set<Duration>()
        for seed in 0..<50 as Range<UInt64> {
            var generator = SplitMix(seed: seed)
            var backoff = Backoff(.seconds(1)...(.seconds(1)))
            pauses.insert(backoff.next(using: &generator))
        }
        #expect(pauses.count > 40)
    }

    @Test("delays start at the minimum again after a reset")
    func reset() {
        var generator = SplitMix(seed: 1)
        var backoff = Backoff(.milliseconds(10)...(.seconds(10)))
        for _ in 0..<20 { _ = backoff.next(using: &generator) }
        #expect(backoff.next(using: &generator) > .seconds(1))
        backoff.reset()
        #expect(backoff.next(using: &generator) <= .milliseconds(10))
    }

    @Test("with equal bounds, delays do not grow")
    func constant() {
        var backoff = Backoff(.seconds(3)...(.seconds(3)))
        for _ in 0..<50 {
            let pause = backoff.next()
            #expect(pause <= .seconds(3) && pause >= .milliseconds(1499))
        }
    }
}
