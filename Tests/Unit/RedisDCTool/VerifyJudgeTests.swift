// The judge of `redisdc verify`, on histories written by hand.
import Testing
import Verification

/// Returns the time in nanoseconds, at an arbitrary offset.
func at(_ seconds: Double) -> UInt64 { UInt64(1_000_000_000_000 + seconds * 1_000_000_000) }

/// Judges events, which need not be in order.
func judged(_ events: [Event], families: [Family] = Family.allCases, isLossless: Bool = false) -> Verdict {
    Judge.judge(RunHistory(.init(seed: 1, ttl: 5000, families: families, isLossless: isLossless), events))
}

extension Verdict {
    /// The result for one promise.
    subscript(promise: Promise) -> Row { promises.first { $0.promise == promise }! }
}

@Suite("The judge of redisdc verify: locks and permits")
struct VerifyJudgeTests {
    /// A claim that is held between two times.
    private func claim(
        _ process: Int, operation: Int = 1, resource: String = "mutex", verb: Event.Verb = .lock,
        called: Double? = nil, from: Double, to: Double, fence: UInt64, count: Int = 1, limit: Int = 1,
        note: String? = nil
    ) -> [Event] {
        [
            Event(
                .enter, at: at(from), process: process, resource, operation: operation, verb: verb,
                called: at(called ?? from), fence: fence, count: count, limit: limit, note: note),
            Event(.held, at: at(to), process: process, operation: operation),
        ]
    }

    private func lost(_ process: Int, operation: Int = 1, at time: Double) -> Event {
        Event(.lost, at: at(time), process: process, operation: operation)
    }

    // MARK: Exclusion

    @Test("holders one after the other violate nothing, and are checked")
    func oneAfterTheOther() {
        let verdict = judged(claim(1, from: 0, to: 1, fence: 1) + claim(2, from: 1.1, to: 2, fence: 2))
        #expect(verdict[.exclusion].result == .held)
        #expect(verdict[.exclusion].checks == 2)
        #expect(verdict[.fences].result == .held)
    }

    @Test("two holders at once are a violation")
    func twoHolders() {
        let verdict = judged(claim(1, from: 0, to: 1, fence: 1) + claim(2, from: 0.9, to: 2, fence: 2))
        #expect(verdict[.exclusion].violations == 1)
        #expect(verdict.result == .violated)
    }

    @Test("two holders at once are announced if one of them was notified of its loss afterwards")
    func announcedOverlap() {
        let both = claim(1, from: 0, to: 1, fence: 1) + claim(2, from: 0.9, to: 2, fence: 2)
        for process in [1, 2] {
            let verdict = judged(both + [lost(process, at: 2.5)])
            #expect(verdict[.exclusion].violations == 0)
            #expect(verdict[.exclusion].announced == 1)
        }
    }

    @Test("a turn of a cohort is announced as lost by what its process is notified of, a strict claim is not")
    func announcedTurn() {
        for (note, violations) in [(Event.turn, 0), (nil, 1)] as [(String?, Int)] {
            let both = claim(1, from: 0, to: 1, fence: 1, note: note) + claim(2, from: 0.9, to: 2, fence: 2)
            for kind in [Event.Kind.dataLost, .sessionLost] {
                let verdict = judged(both + [Event(kind, at: at(2.5), process: 1)])
                #expect(verdict[.exclusion].violations == violations)
                #expect(verdict[.exclusion].announced == 1 - violations)
                // Before the other holder came, or of another process.
                #expect(judged(both + [Event(kind, at: at(0.8), process: 1)])[.exclusion].violations == 1)
                #expect(judged(both + [Event(kind, at: at(2.5), process: 3)])[.exclusion].violations == 1)
            }
        }
    }

    @Test("a notification before the other holder came, or long after it, does not excuse it")
    func wrongNotification() {
        let both = claim(1, from: 0, to: 1, fence: 1) + claim(2, from: 0.9, to: 2, fence: 2)
        #expect(judged(both + [lost(1, at: 0.8)])[.exclusion].violations == 1)
        #expect(judged(both + [lost(1, at: 40)])[.exclusion].violations == 1)
        #expect(judged(both + [lost(1, operation: 7, at: 1.5)])[.exclusion].violations == 1, "of another claim")
    }

    @Test("a holder that was killed after a loss that others were notified of is undecided")
    func killedHolder() {
        let both = claim(1, from: 0, to: 1, fence: 1) + claim(2, from: 0.9, to: 2, fence: 2)
        let killed = Event(.killed, at: at(1.1), process: 1)
        #expect(judged(both + [killed])[.exclusion].violations == 1)
        let verdict = judged(both + [killed, Event(.dataLost, at: at(1.2), process: 3)])
        #expect(verdict[.exclusion].violations == 0)
        #expect(verdict[.exclusion].undecided == 1)
    }

    @Test("readers share a lock, and a writer excludes them")
    func readers() {
        let readers = [1, 2].flatMap { claim($0, resource: "rw", from: 0, to: 1, fence: UInt64($0), limit: 1000) }
        #expect(judged(readers)[.exclusion].result == .held)
        let writer = claim(3, resource: "rw", from: 0.5, to: 0.6, fence: 3, count: 1000, limit: 1000)
        #expect(judged(readers + writer)[.exclusion].violations == 1)
    }

    @Test("as many permits as exist may be leased at once, and no more")
    func permits() {
        func leases(_ counts: [Int]) -> [Event] {
            counts.enumerated().flatMap { number, count in
                claim(
                    number, resource: "pool", verb: .lease, from: Double(number) / 10, to: 1, fence: UInt64(number) + 1,
                    count: count, limit: 3)
            }
        }
        #expect(judged(leases([1, 2]))[.permits].result == .held)
        #expect(judged(leases([1, 2, 1]))[.permits].violations == 1)
        // Two are too many, and one announced loss is not enough.
        #expect(judged(leases([1, 2, 2]) + [lost(0, at: 1.5)])[.permits].violations == 1)
        #expect(judged(leases([1, 2, 2]) + [lost(1, at: 1.5)])[.permits].announced == 1)
    }

    // MARK: Fences

    @Test("a fence that repeats is a violation")
    func equalFences() {
        let verdict = judged(claim(1, from: 0, to: 1, fence: 5) + claim(2, from: 2, to: 3, fence: 5))
        #expect(verdict[.fences].violations == 1)
    }

    @Test("a fence below that of an earlier holder is a violation if the acquire began after its grant")
    func fallingFence() {
        let first = claim(1, from: 0, to: 1, fence: 5)
        #expect(judged(first + claim(2, called: 0.5, from: 2, to: 3, fence: 4))[.fences].violations == 1)
        // The grants of two acquires at the same time may be recorded in another order.
        #expect(judged(first + claim(2, called: -1, from: 2, to: 3, fence: 4))[.fences].result == .held)
        // A notification does not excuse it: fences grow over failovers too.
        let verdict = judged(
            first + claim(2, called: 0.5, from: 2, to: 3, fence: 4) + [Event(.dataLost, at: at(2.5), process: 1)])
        #expect(verdict[.fences].violations == 1)
    }

    // MARK: Conservation

    private func operation(
        _ process: Int, _ number: Int, _ verb: Event.Verb, _ outcome: Event.Outcome?, at time: Double
    ) -> [Event] {
        let call = Event(.call, at: at(time), process: process, "tokens", operation: number, verb: verb, count: 1)
        guard let outcome else { return [call] }
        return [call, Event(.end, at: at(time + 0.01), process: process, operation: number, outcome: outcome)]
    }

    private func value(_ count: Int, created: Int = 2) -> [Event] {
        [Event(.value, at: at(100), process: 0, "tokens", count: count, limit: created)]
    }

    @Test("permits that were signalled and not consumed are left")
    func conserved() {
        let done =
            operation(1, 1, .signal, .ok, at: 0) + operation(1, 2, .signal, .ok, at: 1)
            + operation(2, 1, .wait, .ok, at: 2) + operation(2, 2, .wait, Event.Outcome.none, at: 3)
        #expect(judged(done + value(3))[.conservation].result == .held)
        #expect(judged(done + value(2))[.conservation].violations == 1, "a permit is lost")
        #expect(judged(done + value(4))[.conservation].violations == 1, "a permit is doubled")
    }

    @Test("an operation without a known outcome counts as both")
    func unknownOutcome() {
        for outcome in [Event.Outcome.unknown, nil] {
            let done = operation(1, 1, .signal, outcome, at: 0) + operation(1, 2, .wait, outcome, at: 1)
            for left in 1...3 { #expect(judged(done + value(left))[.conservation].violations == 0) }
            for left in [0, 4] { #expect(judged(done + value(left))[.conservation].violations == 1) }
        }
    }

    @Test("a lost signal is announced if its process was notified of a loss of data")
    func announcedSignal() {
        let done = operation(1, 1, .signal, .ok, at: 0)
        for kind in [Event.Kind.dataLost, .sessionLost] {
            let verdict = judged(done + [Event(kind, at: at(1), process: 1)] + value(2))
            #expect(verdict[.conservation].violations == 0)
            #expect(verdict[.conservation].announced == 1)
        }
        #expect(judged(done + [Event(.dataLost, at: at(1), process: 2)] + value(2))[.conservation].violations == 1)
        #expect(judged(done + [Event(.dataLost, at: at(31), process: 1)] + value(2))[.conservation].violations == 1)
    }

    @Test("a permit that a killed process has consumed last may come back")
    func unconfirmedPermit() {
        let done = operation(1, 1, .wait, .ok, at: 0)
        #expect(judged(done + [Event(.killed, at: at(0.5), process: 1)] + value(2))[.conservation].undecided == 1)
        #expect(judged(done + [Event(.killed, at: at(6), process: 1)] + value(2))[.conservation].violations == 1)
    }

    @Test("what is not free after the run is a violation")
    func notFree() {
        func free(_ outcome: Event.Outcome) -> [Event] {
            [Event(.free, at: at(100), process: 0, "mutex", outcome: outcome)]
        }
        #expect(judged(free(.ok))[.release].result == .held)
        #expect(judged(free(.none))[.release].violations == 1)
    }

    // MARK: The verdict

    @Test("a promise that was never checked makes the verdict \"not checked\"")
    func notChecked() {
        let events = claim(1, from: 0, to: 1, fence: 1) + [Event(.free, at: at(9), process: 0, "mutex", outcome: .ok)]
        #expect(judged(events, families: [.locks]).result == .held)
        #expect(judged(events, families: [.locks, .barriers]).result == .notChecked)
        #expect(judged([], families: [.locks]).result == .notChecked)
    }

    @Test("where nothing may be lost, an announced loss is a violation too")
    func lossless() {
        let events = operation(1, 1, .signal, .ok, at: 0)
        #expect(judged(events, isLossless: true)[.losses].result == .held)
        #expect(judged(events + [Event(.dataLost, at: at(1), process: 1)], isLossless: true)[.losses].violations == 1)
        let expired = Event(.sessionLost, at: at(1), process: 1, note: "expired")
        #expect(judged(events + [expired], isLossless: true)[.losses].result == .held)
        #expect(!judged(events).promises.contains { $0.promise == .losses })
    }

    @Test("a history that was written and read again is the same")
    func codable() throws {
        let events = claim(1, from: 0, to: 1, fence: 1) + operation(2, 1, .signal, .unknown, at: 0.5)
        let history = RunHistory(.init(seed: 7, ttl: 1, families: [.locks], isLossless: true), events)
        let again = try RunHistory(history.lines())
        #expect(again.header == history.header)
        #expect(again.events == history.events)
        #expect(throws: RunHistory.Unreadable.self) { try RunHistory(history.lines() + history.lines()) }
    }
}
