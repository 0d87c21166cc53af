import Hiredis
import Testing

@testable import RedisDC

/// The state machine's arrivals at barriers and leases that are passed on.
@Suite("Engine state machine: arrivals and passing on")
struct ArrivalStateMachineTests {
    private func arrived() -> MachineRun {
        var run = MachineRun.live()
        run.acquire(1, Acquire(resource: MachineRun.resource, action: .arrive))
        run.reply(1, .queued())
        _ = run.taken()
        return run
    }

    @Test("a cancelled arrival leaves the queue")
    func leaves() {
        var run = arrived()
        run.cancel(1)
        #expect(run.taken() == ["send leave 2 of 1"])
        run.reply(2, .done(count: 1, more: false))
        #expect(run.taken() == ["finish 1 cancelled"])
    }

    @Test("an arrival that is cancelled after the barrier opened passes")
    func tooLate() {
        var run = arrived()
        run.cancel(1)
        // A wake-up in the meantime has to wait for the reply.
        run.wakeUp("1 7/1025")
        #expect(run.taken() == ["send leave 2 of 1"])
        run.reply(2, .granted(fence: 7, arrival: 1025))
        #expect(run.taken() == ["finish 1 granted 7"])
    }

    @Test("a cancelled arrival without a reply in time may have passed, and a late grant is released")
    func notTold() {
        var run = arrived()
        run.cancel(1)
        run.advance(EngineStateMachine.Settings().settleTimeout)
        #expect(run.taken() == ["send leave 2 of 1", "finish 1 cancelled may have run"])
        run.reply(2, .granted(fence: 7, arrival: 1025))
        #expect(run.taken() == ["send release 3 of 1"])
    }

    @Test("an arrival that passes instead of leaving is not ended by the late reply to its request", arguments: [1, 2])
    func passesAfterAll(replies: Int) {
        var run = MachineRun.live()
        let exchanger = Resource(name: "x", kind: .exchanger, permits: 2)
        run.acquire(1, Acquire(resource: exchanger, action: .arrive, mode: .lease))
        run.fail(1)
        run.cancel(1)
        // The replies may arrive in any order.
        if replies == 2 { run.reply(1, .queued()) }
        run.reply(2, .granted(fence: 7, arrival: 1025))
        #expect(run.taken().last == "finish 1 granted 7")
        if replies == 1 { run.reply(1, .granted(fence: 7, arrival: 1025)) }
        #expect(run.taken() == [])
        run.call(9) { $0.release(1, releaser: 9, now: $1) }
        run.reply(3, .done(count: 1, more: false))
        #expect(run.taken() == ["send release 3 of 1", "finish 9"])
    }

    @Test("a registration is released when the end of an arrival at its phaser is certain", arguments: [false, true])
    func registrationIsLast(isRefused: Bool) {
        var run = MachineRun.live()
        let phaser = Resource(name: "x", kind: .phaser, permits: 0)
        for id: UInt64 in 1...2 { run.acquire(id, Acquire(resource: phaser, action: .register, mode: .lease)) }
        for number: UInt64 in 1...2 { run.reply(number, .granted(fence: number)) }
        run.acquire(3, .arrivalOfParty(at: phaser))
        run.cancel(3)
        run.advance(EngineStateMachine.Settings().settleTimeout)
        _ = run.taken()
        run.call(8) { $0.release(1, releaser: 8, now: $1) }
        run.call(9) { $0.release(2, releaser: 9, now: $1) }
        #expect(run.taken() == [])
        run.fail(4)
        #expect(run.taken() == ["send leave 4 of 3"])
        if isRefused { run.refuse(4) } else { run.reply(4, .done(count: 1, more: false)) }
        #expect(run.taken() == ["send release 5 of 1", "send release 6 of 2"])
        run.reply(5, .done(count: 1, more: false))
        #expect(run.taken() == ["finish 8"])
        // Nothing else has to be ended first.
        run.reply(6, .done(count: 1, more: false))
        #expect(run.taken() == ["finish 9"])
    }

    @Test("a new arrival waits until the end of an earlier one is certain, which may be that of the same party")
    func arrivesAgain() {
        var run = arrived()
        let again = Acquire(resource: MachineRun.resource, action: .arrive)
        run.cancel(1)
        run.advance(EngineStateMachine.Settings().settleTimeout)
        #expect(run.taken() == ["send leave 2 of 1", "finish 1 cancelled may have run"])
        for id: UInt64 in 2...4 { run.acquire(id, again, timeout: .seconds(1)) }
        // Another barrier is not concerned.
        run.acquire(5, Acquire(resource: Resource(name: "y", kind: .barrier, permits: 2), action: .arrive))
        #expect(run.taken() == ["send acquire 3"])
        run.cancel(2)
        #expect(run.taken() == ["finish 2 cancelled"])
        run.reply(2, .granted(fence: 7, arrival: 1025))
        #expect(run.taken() == ["send release 4 of 1", "send acquire 5", "send acquire 6"])
    }

    @Test("a new arrival that waits for the end of an earlier one is made in the next session")
    func arrivesInNextSession() {
        var run = arrived()
        run.cancel(1)
        run.acquire(2, Acquire(resource: MachineRun.resource, action: .arrive))
        run.acquire(3, Acquire(resource: MachineRun.resource, action: .arrive))
        _ = run.taken()
        run.reply(2, .lost(isExpired: false))
        run.rejoin()
        run.rejoin()
        #expect(run.taken().filter { $0.contains("acquire") } == ["send acquire 1", "send acquire 2"])
    }

    private func passing() -> MachineRun {
        var run = MachineRun.live()
        run.acquire(1)
        run.reply(1, .granted(fence: 7))
        run.call(2) { $0.use(2, claim: 1, now: $1) { Pass(held: $0, target: MachineRun.resource, item: [1], id: nil) } }
        #expect(run.taken() == ["send acquire 1", "finish 1 granted 7", "send pass 2 of 1"])
        return run
    }

    @Test("a lease that was passed on is no longer held, and a repeated request changes nothing")
    func passes() {
        var run = passing()
        run.fail(2)
        #expect(run.taken() == ["send pass 2 of 1"])
        run.reply(2, .done(count: 1, more: false))
        #expect(run.taken() == ["finish 2"])
        run.call(3) { $0.release(1, releaser: 3, now: $1) }
        #expect(run.taken() == ["finish 3 lost"])
    }

    @Test("a lease that could not be passed on is still held and can be released", arguments: [false, true])
    func refused(isGone: Bool) {
        var run = passing()
        if isGone { run.reply(2, .gone) } else { run.refuse(2) }
        #expect(run.taken() == [isGone ? "finish 2 destroyed" : "finish 2 notPermitted"])
        run.call(3) { $0.release(1, releaser: 3, now: $1) }
        #expect(run.taken() == ["send release 3 of 1"])
    }

    @Test("a reconciliation that misses a lease while it is passed on changes nothing")
    func comparedMeanwhile() {
        var run = passing()
        run.apply { machine, id, now in machine.gap(id, now: now) }
        #expect(run.taken() == ["send reconcile 3"])
        run.reply(3, .page(next: 0, []))
        run.reply(2, .done(count: 1, more: false))
        #expect(run.taken() == ["finish 2"])
    }
}
