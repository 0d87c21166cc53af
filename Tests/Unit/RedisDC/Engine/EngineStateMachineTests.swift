import Hiredis
import TestRandom
import Testing

@testable import RedisDC

/// The state machine of the engine's client side, without a server, with a clock that the test
/// moves.
@Suite("Engine state machine")
struct EngineStateMachineTests {
    // MARK: Joining

    @Test("the machine subscribes first, then joins, then sends the requests that waited for the session")
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

    @Test("the session begins even if the subscription fails")
    func unsubscribed() {
        var run = MachineRun()
        run.apply { $0.start() }
        _ = run.taken()
        run.listening(isSubscribed: false)
        #expect(run.taken() == ["join"])
    }

    @Test("a refused join fails the waiting callers")
    func refused() {
        var run = MachineRun()
        run.acquire(1)
        run.apply { $0.start() }
        run.listening()
        _ = run.taken()
        run.apply { $0.joinFailed($1, .fatal(RedisDCError(.conflict, "")), now: $2) }
        #expect(run.taken() == ["finish 1 conflict", "join"])
    }

    @Test("a session that ended before the join was answered is followed by another")
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

    @Test("a reply grants the request")
    func answer() {
        var run = MachineRun.live()
        run.acquire(1)
        run.reply(1, .granted(fence: 7))
        #expect(run.taken() == ["send acquire 1", "finish 1 granted 7"])
    }

    @Test("a wake-up grants the request once, before or after the reply")
    func wakeUp() {
        for wakeUpFirst in [true, false] {
            var run = MachineRun.live()
            run.acquire(1)
            if wakeUpFirst { run.wakeUp("1 7") }
            run.reply(1, .queued())
            if !wakeUpFirst { run.wakeUp("1 7") }
            run.wakeUp("1 7")
            #expect(run.taken() == ["send acquire 1", "finish 1 granted 7"])
        }
    }

    @Test("a request whose reply is lost is sent again with the same number")
    func retry() {
        var run = MachineRun.live()
        run.acquire(1)
        run.fail(1)
        run.fail(1)
        #expect(run.taken() == ["send acquire 1", "send acquire 1", "send acquire 1"])
    }

    @Test("a cancelled wait is released on the server before the call returns")
    func cancel() {
        var run = MachineRun.live()
        run.acquire(1)
        run.reply(1, .queued())
        run.cancel(1)
        #expect(run.taken() == ["send acquire 1", "send release 2 of 1"])
        // A grant in the meantime changes nothing.
        run.wakeUp("1 7")
        #expect(run.taken() == [])
        run.reply(2, .done(count: 1, more: false))
        #expect(run.taken() == ["finish 1 cancelled"])
    }

    @Test("a cancelled call returns after settleTimeout if the server does not answer")
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

    @Test("a wait that times out takes nothing")
    func timeOut() {
        var run = MachineRun.live()
        run.acquire(1, timeout: .milliseconds(50))
        run.reply(1, .queued())
        _ = run.taken()
        run.advance(.milliseconds(51))
        #expect(run.taken() == ["send release 2 of 1"])
        run.reply(2, .done(count: 1, more: false))
        #expect(run.taken() == ["finish 1 timedOut"])
    }

    @Test("a consumed permit is confirmed by the next request in its slot, or soon by a request of its own")
    func confirm() {
        var run = MachineRun.live()
        run.acquire(1, mode: .consume)
        run.reply(1, .granted(fence: 1))
        run.acquire(2, mode: .consume)
        #expect(run.requests[2]?.slot == run.requests[1]?.slot)
        run.reply(2, .granted(fence: 1))
        _ = run.taken()
        run.advance(.milliseconds(6))
        #expect(run.taken() == ["send confirm 3 of 2"])
        run.advance(.milliseconds(6))
        #expect(run.taken() == [])
    }

    @Test("a request has at most 100 confirmations")
    func confirmMany() {
        var run = MachineRun.live()
        for id: UInt64 in 1...250 { run.acquire(id, mode: .consume) }
        for number: UInt64 in 1...250 { run.reply(number, .granted(fence: 1)) }
        _ = run.takenActions()
        run.advance(.milliseconds(6))
        var confirmed: [UInt64] = []
        for number: UInt64 in 251...253 {
            guard let claims = (run.requests[number]?.operation as? Confirm)?.claims else {
                Issue.record("request \(number) confirms nothing")
                continue
            }
            #expect(claims.count <= 100)
            confirmed += claims.map(\.number)
        }
        #expect(confirmed == Array(1...250))
    }

    @Test("what a refused request would have confirmed is confirmed by another one", arguments: [false, true])
    func confirmAgain(isAnswered: Bool) {
        var run = MachineRun.live()
        run.acquire(1, mode: .consume)
        run.reply(1, .granted(fence: 1))
        run.acquire(2, mode: .consume)
        if isAnswered { run.reply(2, .none) } else { run.refuse(2) }
        _ = run.taken()
        run.advance(.seconds(6))
        #expect(run.taken().contains("send confirm 4 of 1"))
    }

    @Test("a slot is used again when its claim has ended, and not before")
    func slots() {
        var run = MachineRun.live()
        for id: UInt64 in 1...3 { run.acquire(id) }
        #expect((1...3).map { run.requests[$0]?.slot } == [0, 1, 2])
        run.reply(1, .granted(fence: 7))
        run.reply(2, .queued())
        run.reply(3, .queued())
        run.acquire(4)
        #expect(run.requests[4]?.slot == 3)
        run.cancel(2)
        run.acquire(5)
        #expect(run.requests[6]?.slot == 4)
        run.reply(5, .done(count: 1, more: false))
        run.acquire(6)
        #expect(run.requests[7]?.slot == 1)
        run.wakeUp("3 gone")
        run.acquire(7)
        #expect(run.requests[8]?.slot == 2)
    }

    // MARK: Loss

    @Test("when the session expires by the local clock, holders are notified first")
    func expired() {
        var run = MachineRun.live()
        run.acquire(1)
        run.reply(1, .granted(fence: 7))
        run.acquire(2)
        run.reply(2, .queued())
        _ = run.taken()
        run.now += .seconds(14)
        // A grant after the expiry has no effect.
        run.wakeUp("2 8")
        #expect(run.taken() == ["event lost expired", "lose 1", "subscribe"])
        run.listening()
        run.joined()
        #expect(run.taken() == ["join", "event started", "send acquire 1"])
    }

    @Test("an answered heartbeat extends the session from the time at which it was sent")
    func heartbeat() {
        var run = MachineRun.holding()
        run.advance(.seconds(5))
        #expect(run.taken() == ["send heartbeat 2"])
        run.now += .seconds(3)
        run.reply(2, .heartbeat(notices: 0, isDataLost: false, .none))
        _ = run.taken()
        // It was sent at 5 s and extends the session by 13.5 s.
        run.now = .seconds(18)
        run.apply { $0.tick(now: $2) }
        #expect(!run.taken().contains("lose 1"))
        run.now = .milliseconds(18_501)
        run.apply { $0.tick(now: $2) }
        #expect(run.taken().contains("lose 1"))
    }

    @Test("a signal in flight when the session is lost fails with mayHaveRun")
    func lostSignal() {
        var run = MachineRun.live()
        run.call(1) { $0.call(1, Signal(MachineRun.resource, count: 1), now: $1) }
        run.reply(1, .lost(isExpired: false))
        #expect(
            run.taken() == [
                "send signal 1", "event lost dataLost", "finish 1 connectionLost may have run", "subscribe",
            ])
    }

    @Test("a release in flight when the session is lost fails with .lost")
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

    // MARK: Requests that cannot be sent yet

    @Test("a try in flight when the session is lost fails if no new session begins in time")
    func tryInLostSession() {
        var run = MachineRun.live()
        run.acquire(1, Acquire(resource: MachineRun.resource, mayQueue: false))
        run.reply(1, .lost(isExpired: false))
        #expect(run.taken() == ["send acquire 1", "event lost dataLost", "subscribe"])
        run.advance(.seconds(9))
        #expect(run.taken() == [])
        run.advance(.seconds(1))
        #expect(run.taken() == ["finish 1 notConnected"])
    }

    @Test("an acquire waits while maxPending requests are in flight; each reply sends the next one, in order")
    func maxPending() {
        var run = MachineRun.live()
        let most = UInt64(EngineStateMachine.maxPending)
        for id in 1...(most + 2) { run.acquire(id) }
        #expect(run.taken().count == Int(most) && run.lastNumber == most)
        run.reply(7, .queued())
        #expect(run.taken() == ["send acquire \(most + 1)"])
        run.refuse(8)
        #expect(run.taken() == ["finish 8 notPermitted", "send acquire \(most + 2)"])
        // A request that is cancelled before it is sent is skipped.
        run.acquire(most + 3)
        run.acquire(most + 4)
        run.cancel(most + 3)
        run.reply(9, .queued())
        #expect(run.taken() == ["finish \(most + 3) cancelled", "send acquire \(most + 3)"])
        run.reply(most + 3, .granted(fence: 5))
        #expect(run.taken() == ["finish \(most + 4) granted 5"])
    }

    // MARK: Conditions

    /// Returns a run in which mutex 1 is released as soon as wait 2 has its place in a condition's
    /// queue.
    private func waitingForCondition() -> MachineRun {
        var run = MachineRun.live()
        run.acquire(1)
        run.reply(1, .granted(fence: 7))
        run.acquire(2, Acquire(resource: MachineRun.resource, failsOnLoss: true, detail: .releases(1)))
        _ = run.taken()
        return run
    }

    @Test("the mutex is released once, and not before the place in the queue is certain")
    func letsGo() {
        var run = waitingForCondition()
        run.fail(2)
        #expect(run.taken() == ["send acquire 2"])
        run.reply(2, .queued())
        #expect(run.taken() == ["send release 3 of 1"])
        run.wakeUp("2 9")
        #expect(run.taken() == ["finish 2 granted 9"])
    }

    @Test("a notify that arrives before the reply releases the mutex too")
    func letsGoByWakeUp() {
        var run = waitingForCondition()
        run.wakeUp("2 9")
        #expect(run.taken() == ["send release 3 of 1", "finish 2 granted 9"])
        run.reply(2, .queued())
        #expect(run.taken() == [])
    }

    @Test("a refused wait keeps the mutex")
    func refusedWait() {
        var run = waitingForCondition()
        run.refuse(2)
        #expect(run.taken() == ["finish 2 notPermitted"])
    }

    @Test("a wait on a condition that is lost with the session is not queued again")
    func lostWait() {
        var run = waitingForCondition()
        run.reply(2, .queued())
        _ = run.taken()
        run.acquire(4)
        run.reply(4, .lost(isExpired: false))
        #expect(run.taken() == ["send acquire 4", "event lost dataLost", "finish 2 lost", "subscribe"])
        run.rejoin()
        #expect(run.taken() == ["join", "event started", "send acquire 1"])
    }

    @Test("what depends on the session and was not sent in it is not sent in the next one")
    func lostBeforeSending() {
        var run = MachineRun.live()
        for id in 1...512 as ClosedRange<UInt64> { run.acquire(id) }
        run.acquire(513, Acquire(resource: MachineRun.resource, failsOnLoss: true))
        _ = run.taken()
        run.reply(1, .lost(isExpired: false))
        #expect(run.taken() == ["event lost dataLost", "finish 513 lost", "subscribe"])
    }

    // MARK: End

    @Test("stop fails all callers and releases all claims")
    func stop() {
        var run = MachineRun.live()
        run.acquire(1)
        run.reply(1, .granted(fence: 7))
        run.acquire(2)
        run.reply(2, .queued())
        _ = run.taken()
        run.apply { $0.stop() }
        #expect(run.taken() == ["lose 1", "finish 2 stopped"])
        run.acquire(3)
        #expect(run.taken() == ["finish 3 stopped"])
        #expect(run.shutdownRequests() == [["release of 1", "release of 2"]])
    }

    @Test("a shutdown ends the registration with a phaser after the arrivals there")
    func stopOfParties() {
        let phaser = Resource(name: "p", kind: .phaser, permits: 0)
        var run = MachineRun.live()
        run.acquire(1, Acquire(resource: phaser, action: .register, mode: .lease))
        run.reply(1, .granted(fence: 7))
        run.acquire(2)
        run.acquire(3, Acquire(resource: phaser, action: .arrive))
        run.reply(3, .queued())
        run.apply { $0.stop() }
        #expect(run.shutdownRequests() == [["release of 2", "release of 3"], ["release of 1"]])
    }

    @Test("a shutdown repeats the end of an arrival for which nobody waits any more")
    func stopAfterGivingUp() {
        let phaser = Resource(name: "p", kind: .phaser, permits: 0)
        var run = MachineRun.live()
        run.acquire(1, Acquire(resource: phaser, action: .register, mode: .lease))
        run.reply(1, .granted(fence: 7))
        run.acquire(2, Acquire(resource: phaser, action: .arrive))
        run.reply(2, .queued())
        run.cancel(2)
        run.advance(.milliseconds(250))
        run.apply { $0.stop() }
        #expect(run.shutdownRequests() == [["release of 2"], ["release of 1"]])
    }

    // MARK: Random events

    @Test(
        "in any order of events every call finishes exactly once and holds only what Redis granted",
        arguments: testSeeds(0..<300))
    func random(seed: UInt64) {
        var generator = SplitMix(seed: seed)
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
                run.wakeUp("\(number) \(number + 1000)")
            case 10: run.advance(.milliseconds(Int.random(in: 0...3000, using: &generator)))
            default:
                if let id = held.randomElement(using: &generator) {
                    held.remove(id)
                    run.call(0) { $0.release(id, releaser: nil, now: $1) }
                } else {
                    run.gap()
                }
            }
            run.rejoin()
            look()
        }
        run.apply { $0.stop() }
        look()
        for id in asked { #expect(finished[id] == 1, "call \(id) finished \(finished[id] ?? 0) times") }
        #expect(held.isEmpty)
    }
}
