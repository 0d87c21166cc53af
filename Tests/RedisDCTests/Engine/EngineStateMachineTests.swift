import Hiredis
import TestRandom
import Testing

@testable import RedisDC

/// The engine's client side in memory: every event at any time, with a clock that the test moves.
@Suite("Engine machine")
struct EngineStateMachineTests {
    // MARK: Joining

    @Test("the channel comes first, then the session, then what has waited for it")
    func order() {
        var run = MachineRun()
        run.acquire(1)
        #expect(run.taken().isEmpty)
        run.apply { $0.start() }
        #expect(run.taken() == ["subscribe"])
        run.listening()
        #expect(run.taken() == ["join"])
        run.joined()
        #expect(run.taken() == ["event started", "send acquire 1"])
    }

    @Test("without a channel the session begins all the same")
    func deaf() {
        var run = MachineRun()
        run.apply { $0.start() }
        _ = run.taken()
        run.listening(isSubscribed: false)
        #expect(run.taken() == ["join"])
    }

    @Test("who has waited for a session that is refused is told")
    func refused() {
        var run = MachineRun()
        run.acquire(1)
        run.apply { $0.start() }
        run.listening()
        _ = run.taken()
        run.apply { $0.joinFailed($1, .fatal(RedisDCError(.conflict, "")), now: $2) }
        #expect(run.taken() == ["finish 1 conflict", "join"])
    }

    @Test("a session that ended before its begin was known is followed by another")
    func joinedTooLate() {
        var run = MachineRun()
        run.acquire(1)
        run.apply { $0.start() }
        run.listening()
        _ = run.taken()
        run.apply { machine, id, _ in machine.joinedTooLate(id) }
        #expect(run.taken() == ["subscribe"])
        run.listening()
        run.joined()
        #expect(run.taken() == ["join", "event started", "send acquire 1"])
    }

    // MARK: Acquire

    @Test("granted by the answer")
    func answer() {
        var run = MachineRun.live()
        run.acquire(1)
        run.reply(1, .granted(fence: 7))
        #expect(run.taken() == ["send acquire 1", "finish 1 granted 7"])
    }

    @Test("granted by a hint, before or after the answer, once")
    func hint() {
        for hintFirst in [true, false] {
            var run = MachineRun.live()
            run.acquire(1)
            if hintFirst { run.hint("1 7") }
            run.reply(1, .queued)
            if !hintFirst { run.hint("1 7") }
            run.hint("1 7")
            #expect(run.taken() == ["send acquire 1", "finish 1 granted 7"])
        }
    }

    @Test("a request whose answer is lost is sent again, with the same number")
    func retry() {
        var run = MachineRun.live()
        run.acquire(1)
        run.fail(1)
        run.fail(1)
        #expect(run.taken() == ["send acquire 1", "send acquire 1", "send acquire 1"])
    }

    @Test("a cancelled wait is ended with the server before its caller is told")
    func cancel() {
        var run = MachineRun.live()
        run.acquire(1)
        run.reply(1, .queued)
        run.cancel(1)
        #expect(run.taken() == ["send acquire 1", "send release 2 of 1"])
        // Whether it was granted meanwhile or not.
        run.hint("1 7")
        #expect(run.taken() == [])
        run.reply(2, .done(count: 1, more: false))
        #expect(run.taken() == ["finish 1 cancelled"])
    }

    @Test("a caller is not held up when the server does not answer")
    func settleTimeout() {
        var run = MachineRun.live()
        run.acquire(1)
        run.cancel(1)
        _ = run.taken()
        run.advance(.milliseconds(260))
        #expect(run.taken() == ["finish 1 cancelled"])
        run.reply(2, .done(count: 1, more: false))
        #expect(run.taken() == [])
    }

    @Test("a wait whose time is up has taken nothing")
    func timeOut() {
        var run = MachineRun.live()
        run.acquire(1, timeout: .milliseconds(50))
        run.reply(1, .queued)
        _ = run.taken()
        run.advance(.milliseconds(51))
        #expect(run.taken() == ["send release 2 of 1"])
        run.reply(2, .done(count: 1, more: false))
        #expect(run.taken() == ["finish 1 timedOut"])
    }

    @Test("a consumed permit is confirmed with the next request, or soon by itself")
    func acknowledge() {
        var run = MachineRun.live()
        run.acquire(1, mode: .consume)
        run.reply(1, .granted(fence: 7))
        run.acquire(2, mode: .consume)
        #expect(run.taken().last == "send acquire 2 confirming 1")
        run.reply(2, .granted(fence: 8))
        _ = run.taken()
        run.advance(.milliseconds(6))
        #expect(run.taken() == ["send heartbeat 3 confirming 2"])
    }

    @Test("thousands of confirmations travel in several requests")
    func acknowledgeMany() {
        var run = MachineRun.live()
        for id: UInt64 in 1...250 { run.acquire(id, mode: .consume) }
        for number: UInt64 in 1...250 { run.reply(number, .granted(fence: number)) }
        _ = run.takenActions()
        var confirmed: [UInt64] = []
        for number: UInt64 in 251...253 {
            run.advance(.milliseconds(6))
            let request = run.requests[number]
            #expect(request?.acknowledged.count ?? 0 <= 100)
            confirmed += request?.acknowledged ?? []
            run.reply(number, .heartbeat(grants: 0, claims: 0, .none))
        }
        #expect(confirmed == Array(1...250))
    }

    @Test("what a failed request was to confirm is confirmed by another")
    func acknowledgeAgain() {
        var run = MachineRun.live()
        run.acquire(1, mode: .consume)
        run.reply(1, .granted(fence: 7))
        run.acquire(2, mode: .consume)
        run.refuse(2)
        _ = run.taken()
        run.acquire(3)
        #expect(run.taken() == ["send acquire 3 confirming 1"])
    }

    // MARK: Loss

    @Test("when the session is over by our own clock, holders are told before anything else")
    func expired() {
        var run = MachineRun.live()
        run.acquire(1)
        run.reply(1, .granted(fence: 7))
        run.acquire(2)
        run.reply(2, .queued)
        _ = run.taken()
        run.now += .seconds(14)
        // A grant that comes too late is nobody's.
        run.hint("2 8")
        #expect(run.taken() == ["event lost expired", "lose 1", "subscribe"])
        run.listening()
        run.joined()
        #expect(run.taken() == ["join", "event started", "send acquire 1"])
    }

    @Test("a heartbeat that is answered prolongs the session from when it was sent")
    func heartbeat() {
        var run = MachineRun.live()
        run.acquire(1)
        run.reply(1, .granted(fence: 7))
        _ = run.taken()
        run.advance(.seconds(5))
        #expect(run.taken() == ["send heartbeat 2"])
        run.now += .seconds(3)
        run.reply(2, .heartbeat(grants: 0, claims: 1, .none))
        _ = run.taken()
        // 5 s when it was sent, 13.5 s that it lasts.
        run.now = .seconds(18)
        run.apply { $0.tick(now: $2) }
        #expect(!run.taken().contains("lose 1"))
        run.now = .milliseconds(18_501)
        run.apply { $0.tick(now: $2) }
        #expect(run.taken().contains("lose 1"))
    }

    @Test("a signal under way when the session is lost may have run")
    func lostSignal() {
        var run = MachineRun.live()
        run.call(1) { $0.call(1, .signal(MachineRun.resource, count: 1), now: $1) }
        run.reply(1, .lost(isExpired: false))
        #expect(
            run.taken() == [
                "send signal 1", "event lost dataLost", "finish 1 connectionLost may have run", "subscribe",
            ])
    }

    @Test("a release under way when the session is lost says so")
    func lostRelease() {
        var run = MachineRun.live()
        run.acquire(1)
        run.reply(1, .granted(fence: 7))
        run.call(9) { $0.release(1, releaser: 9, now: $1) }
        run.reply(2, .lost(isExpired: false))
        #expect(
            run.taken() == [
                "send acquire 1", "finish 1 granted 7", "send release 2 of 1", "event lost dataLost", "finish 9 lost",
                "subscribe",
            ])
    }

    // MARK: What cannot be begun now

    @Test("a try that was under way when the session was lost is told when there is no other one in time")
    func tryInLostSession() {
        var run = MachineRun.live()
        run.acquire(1, AcquireRequest(resource: MachineRun.resource, queues: false))
        run.reply(1, .lost(isExpired: false))
        #expect(run.taken() == ["send acquire 1", "event lost dataLost", "subscribe"])
        run.advance(.seconds(9))
        #expect(run.taken() == [])
        run.advance(.seconds(1))
        #expect(run.taken() == ["finish 1 notConnected"])
    }

    @Test("so many requests are under way, the next one is sent when one is answered, in the order in which they came")
    func maxPending() {
        var run = MachineRun.live()
        let most = UInt64(EngineStateMachine.maxPending)
        for id in 1...(most + 2) { run.acquire(id) }
        #expect(run.taken().count == Int(most) && run.lastNumber == most)
        run.reply(7, .queued)
        #expect(run.taken() == ["send acquire \(most + 1)"])
        run.refuse(8)
        #expect(run.taken() == ["finish 8 notPermitted", "send acquire \(most + 2)"])
        // Who has given up meanwhile is passed over.
        run.acquire(most + 3)
        run.acquire(most + 4)
        run.cancel(most + 3)
        run.reply(9, .queued)
        #expect(run.taken() == ["finish \(most + 3) cancelled", "send acquire \(most + 3)"])
        run.reply(most + 3, .granted(fence: 5))
        #expect(run.taken() == ["finish \(most + 4) granted 5"])
    }

    // MARK: Conditions

    /// A mutex, 1, is to be let go for a place in a condition's queue, 2.
    private func waitingForCondition() -> MachineRun {
        var run = MachineRun.live()
        run.acquire(1)
        run.reply(1, .granted(fence: 7))
        run.acquire(2, AcquireRequest(resource: MachineRun.resource, failsOnLoss: true, detail: .releases(1)))
        _ = run.taken()
        return run
    }

    @Test("the mutex is let go when the place in the queue is certain, not before, and once")
    func letsGo() {
        var run = waitingForCondition()
        run.fail(2)
        #expect(run.taken() == ["send acquire 2"])
        run.reply(2, .queued)
        #expect(run.taken() == ["send release 3 of 1"])
        run.hint("2 9")
        #expect(run.taken() == ["finish 2 granted 9"])
    }

    @Test("a notify that comes before the answer lets the mutex go too")
    func letsGoByHint() {
        var run = waitingForCondition()
        run.hint("2 9")
        #expect(run.taken() == ["send release 3 of 1", "finish 2 granted 9"])
        run.reply(2, .queued)
        #expect(run.taken() == [])
    }

    @Test("a wait that is refused keeps the mutex")
    func refusedWait() {
        var run = waitingForCondition()
        run.refuse(2)
        #expect(run.taken() == ["finish 2 notPermitted"])
    }

    @Test("a place that is lost with the session is not taken anew")
    func lostWait() {
        var run = waitingForCondition()
        run.reply(2, .queued)
        _ = run.taken()
        run.acquire(4)
        run.reply(4, .lost(isExpired: false))
        #expect(run.taken() == ["send acquire 4", "event lost dataLost", "finish 2 lost", "subscribe"])
        run.rejoin()
        #expect(run.taken() == ["join", "event started", "send acquire 1"])
    }

    // MARK: End

    @Test("stopping tells everyone, and ends what was held or waited for")
    func stop() {
        var run = MachineRun.live()
        run.acquire(1)
        run.reply(1, .granted(fence: 7))
        run.acquire(2)
        run.reply(2, .queued)
        _ = run.taken()
        run.apply { $0.stop() }
        #expect(run.taken() == ["lose 1", "finish 2 stopped"])
        run.acquire(3)
        #expect(run.taken() == ["finish 3 stopped"])
        #expect(run.shutdownRequests() == ["release of 1", "release of 2"])
    }

    // MARK: At random

    @Test(
        "in any order of events every caller is told exactly once, and holds only what Redis gave", arguments: 0..<300)
    func random(seed: Int) {
        var generator = SplitMix(seed: UInt64(seed))
        var run = MachineRun.live()
        var asked: Set<UInt64> = []
        var finished: [UInt64: Int] = [:]
        var held: Set<UInt64> = []
        var nextID: UInt64 = 1
        func look() {
            for action in run.takenActions() {
                switch action {
                case .finish(let id, let result):
                    finished[id, default: 0] += 1
                    if case .success(.granted) = result { held.insert(id) }
                case .lose(let id, _): #expect(held.remove(id) != nil)
                default: break
                }
            }
        }
        for _ in 0..<200 {
            switch Int.random(in: 0..<12, using: &generator) {
            case 0..<3:
                asked.insert(nextID)
                run.acquire(
                    nextID, timeout: Bool.random(using: &generator) ? .milliseconds(20) : nil)
                nextID += 1
            case 3: if let id = asked.randomElement(using: &generator) { run.cancel(id) }
            case 4..<8:
                guard let request = run.unanswered.values.randomElement(using: &generator) else { break }
                run.answerAtRandom(request, &generator)
            case 8: if let number = run.unanswered.keys.randomElement(using: &generator) { run.fail(number) }
            case 9:
                let number = UInt64.random(in: 1...(run.lastNumber + 1), using: &generator)
                run.hint("\(number) \(number + 1000)")
            case 10: run.advance(.milliseconds(Int.random(in: 0...3000, using: &generator)))
            default:
                if let id = held.randomElement(using: &generator) {
                    held.remove(id)
                    run.call(0) { $0.release(id, releaser: nil, now: $1) }
                } else {
                    run.apply { $0.gap($1, now: $2) }
                }
            }
            run.rejoin()
            look()
        }
        run.apply { $0.stop() }
        look()
        for id in asked { #expect(finished[id] == 1, "caller \(id) was told \(finished[id] ?? 0) times") }
        #expect(held.isEmpty)
    }
}
