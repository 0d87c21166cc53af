import Testing

@testable import Gateway

@Suite("Times of a stream")
struct StreamTimesTests {
    @Test("a write that outlasts the session is watched at the same pace as before")
    func expiredDuringWrite() throws {
        let start = ContinuousClock.now
        var times = StreamTimes(GatewayConfiguration(), expires: start + .seconds(20), now: start)
        var (now, wakeUps, actions): (ContinuousClock.Instant, [Duration], [StreamTimes.Action]) = (start, [], [])
        while !actions.contains(.closeSlowReader) {
            let next = times.wakeUp(after: now)
            // With a wake-up in the past the owner does not sleep.
            try #require(next > now)
            now = next
            wakeUps.append(now - start)
            actions += times.actions(at: now, writingSince: start)
        }
        #expect(actions == [.expire, .closeSlowReader])
        #expect(wakeUps == [.seconds(7.5), .seconds(15), .seconds(20), .seconds(27.5), .seconds(35)])
    }

    @Test("a stream without a write gets a sign of life in each interval, and one after a write that has ended")
    func keepAlive() {
        let start = ContinuousClock.now
        var times = StreamTimes(GatewayConfiguration(), expires: start + .seconds(3600), now: start)
        func actions(_ seconds: Double, writingSince: Double? = nil) -> [StreamTimes.Action] {
            times.actions(at: start + .seconds(seconds), writingSince: writingSince.map { start + .seconds($0) })
        }
        #expect(actions(14) == [])
        #expect(actions(15) == [.keepAlive])
        #expect(actions(29) == [])
        #expect(actions(31, writingSince: 1) == [])
        #expect(actions(31.5, writingSince: 1) == [.closeSlowReader])
        #expect(actions(32) == [.keepAlive])
        #expect(actions(46) == [])
    }
}
