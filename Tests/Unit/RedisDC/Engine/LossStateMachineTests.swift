import Hiredis
import Testing

@testable import RedisDC

/// The state machine after a failover that lost the last writes: what it knows, and the new master lacks.
@Suite("Engine state machine: lost writes")
struct LossStateMachineTests {
    @Test("consumed permits whose grant Redis has lost wait no more, with their confirmation due, in flight or carried")
    func consumedGrantLost() {
        var run = MachineRun.live()
        for id: UInt64 in 1...4 { run.acquire(id, mode: .consume) }
        for number: UInt64 in 1...3 { run.reply(number, .granted(fence: 1)) }
        run.reply(4, .queued())
        // This request uses the slot of 3 again.
        run.acquire(5)
        run.advance(EngineStateMachine.Settings().confirmationDelay)
        run.acquire(6, mode: .consume)
        run.reply(7, .granted(fence: 1))
        _ = run.taken()
        run.gap()
        #expect(run.taken() == ["send reconcile 8"])
        // The wake-up of this grant overtakes the list, in which its claim still waits.
        run.apply { $0.wakeUpReceived($1, "1 4 1", now: $2) }
        _ = run.taken()
        let listed = [1, 2, 3, 4, 7].map {
            EngineReply.Line(slot: Int($0) - 1, number: $0, state: .waiting, fence: 1, name: "x")
        }
        run.reply(8, .page(next: 0, listed))
        #expect(
            run.taken() == [
                "send force 9 of session1:1", "send force 10 of session1:2", "send force 11 of session1:3",
                "send force 12 of session1:7", "event dataLost",
            ])
    }

    @Test("a lease that Redis has as a waiter, or with another fence, is lost: others may have held the resource since")
    func replaced() {
        var run = MachineRun.live()
        for id: UInt64 in 1...3 {
            run.acquire(id)
            run.reply(id, .granted(fence: 6 + id))
        }
        _ = run.taken()
        run.gap()
        run.reply(
            4,
            .page(
                next: 0,
                [
                    .init(slot: 0, number: 1, state: .waiting, fence: 3, name: "x"),
                    .init(slot: 1, number: 2, state: .held, fence: 11, name: "x"),
                    .init(slot: 2, number: 3, state: .held, fence: 9, name: "x"),
                ]))
        #expect(
            run.taken() == [
                "send reconcile 4", "lose 1", "send release 5 of 1", "lose 2", "send release 6 of 2", "event dataLost",
            ])
    }

    @Test("a lease that is missing in the index is released, so that its permits are not lost permanently")
    func lostHolding() {
        var run = MachineRun.holding()
        run.gap()
        run.reply(2, .page(next: 0, []))
        #expect(run.taken() == ["send reconcile 2", "lose 1", "send release 3 of 1", "event dataLost"])
    }

    @Test("a waiter that Redis has lost is queued again")
    func reconcileQueue() {
        var run = MachineRun.waiting()
        run.gap()
        run.reply(2, .page(next: 0, []))
        #expect(run.taken() == ["send reconcile 2", "send release 3 of 1", "send acquire 4", "event dataLost"])
    }

    @Test("a waiter that fails on a loss fails when Redis has lost its place in the queue")
    func lostPlace() {
        var run = MachineRun.live()
        run.acquire(1, Acquire(resource: MachineRun.resource, failsOnLoss: true))
        run.reply(1, .queued())
        run.gap()
        run.reply(2, .page(next: 0, []))
        #expect(
            run.taken() == [
                "send acquire 1", "send reconcile 2", "finish 1 lost", "send release 3 of 1", "event dataLost",
            ])
    }

    @Test("a heartbeat that does not find the last answered request reports the loss and starts a reconciliation")
    func lostTail() throws {
        var run = MachineRun.holding()
        run.advance(.seconds(5))
        let heartbeat = try #require(run.heartbeat(2))
        #expect(heartbeat.seen == .written(slot: 0, number: 1))
        #expect(heartbeat.fence == 7)
        run.reply(2, .heartbeat(notices: 0, isDataLost: true, .none))
        #expect(run.taken() == ["send heartbeat 2", "event dataLost", "send reconcile 3"])
    }

    @Test(
        "a lease that Redis has without the item that the process has read is lost: others can take the item",
        arguments: [Family.item, .permits], [true, false])
    func lostItem(family: Family, isRead: Bool) {
        var run = MachineRun.live()
        let items = Resource(name: "x", kind: .bufferItems, permits: 0)
        run.acquire(1, Acquire(resource: items, mode: .lease))
        run.reply(1, .granted(fence: 7))
        run.call(9) { $0.use(9, claim: 1, now: $1) { ReadValues(held: $0, first: 0) } }
        if isRead { run.reply(2, .values([[1]], next: 0)) }
        _ = run.taken()
        run.gap()
        run.reply(3, .page(next: 0, [.init(number: 1, state: .held, fence: 7, family: family, name: "x")]))
        let loss = isRead && family != .item ? ["lose 1", "send release 4 of 1", "event dataLost"] : []
        #expect(run.taken() == ["send reconcile 3"] + loss)
    }
}
