// When a post office looks for sends that are due.
import Testing

@testable import QueueListen

extension LaterSender.Watch {
    fileprivate mutating func record(_ ids: [String], next: Int?, at now: Int) {
        let due = next.map { LaterBook.Due($0, now: now * 1000) }
        record(
            LaterBook.Page(now: now * 1000, next: due, ids: ids), now: .milliseconds(now),
            recheck: .seconds(7), delay: .milliseconds(250))
    }
}

@Suite("When a post office looks for sends that are due")
struct LaterWatchTests {
    @Test("exactly when the next send is due, and after a while if nothing is known")
    func exactly() {
        var watch = LaterSender.Watch()
        watch.record([], next: nil, at: 1000)
        #expect(watch.at == .milliseconds(8000))
        watch.record([], next: 3000, at: 2000)
        #expect(watch.at == .milliseconds(3000))
        // It looked a little too early: nobody has taken it.
        watch.record([], next: 3000, at: 2999)
        #expect(watch.at == .milliseconds(3000))
        watch.record(["a"], next: 3050, at: 3000)
        #expect(watch.at == .milliseconds(3050))
        watch.record(["b"], next: 99_000, at: 3050)
        #expect(watch.at == .milliseconds(10_050))
        // There are more than could be taken.
        watch.record(["c", "d"], next: 98_000, at: 99_000)
        #expect(watch.at == .milliseconds(99_000))
    }

    @Test("later than another one that was earlier, until that one leaves something")
    func second() {
        var watch = LaterSender.Watch()
        watch.record([], next: 3000, at: 2000)
        watch.record([], next: 4000, at: 3000)
        #expect(watch.at == .milliseconds(4250))
        watch.record([], next: 5000, at: 4250)
        #expect(watch.at == .milliseconds(5250))
        watch.record(["a"], next: 6000, at: 5250)
        #expect(watch.at == .milliseconds(6000))
    }

    @Test("exactly when a send of its own is due, also if that was scheduled during a look")
    func meanwhile() {
        var watch = LaterSender.Watch()
        watch.record([], next: 9000, at: 1000)
        watch.add(at: .milliseconds(5000), due: 5000)
        watch.add(at: .milliseconds(6000), due: 6000)
        #expect(watch.at == .milliseconds(5000))
        watch.isLooking = true
        watch.add(at: .milliseconds(5002), due: 5002)
        watch.isLooking = false
        // The look was earlier than the send.
        watch.record(["a"], next: 9000, at: 5000)
        #expect(watch.at == .milliseconds(5002))
        watch.record(["b"], next: 9000, at: 5002)
        #expect(watch.at == .milliseconds(9000))
    }
}
