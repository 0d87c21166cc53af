import Hiredis
import Testing

@testable import RedisDC

/// The state machine after missed hints: reconciliation with Redis, and replies that no script
/// sends.
@Suite("Engine state machine: reconciliation")
struct ReconcileStateMachineTests {
    @Test("after a gap a missed grant is delivered, an unknown claim is released and a missing lease is lost")
    func reconcile() {
        var run = MachineRun.live()
        for id: UInt64 in 1...3 { run.acquire(id) }
        run.reply(1, .granted(fence: 7))
        run.reply(2, .queued)
        run.reply(3, .queued)
        _ = run.taken()
        run.apply { $0.gap($1, now: $2) }
        #expect(run.taken() == ["send reconcile 4"])
        // 1 is missing, 2 has been granted, 3 still waits, 77 is unknown.
        run.reply(
            4,
            .page(
                next: "",
                [
                    .init(number: 2, state: .held, fence: 9, name: "x"),
                    .init(number: 3, state: .waiting, fence: 5, name: "x"),
                    .init(number: 77, state: .held, fence: 6, name: "y"),
                ]))
        #expect(
            run.taken() == [
                "finish 2 granted 9", "send release 5 of 77", "lose 1", "send release 6 of 1", "event dataLost",
            ])
    }

    @Test("an undelivered consumed permit is returned, one whose confirmation is in flight is not")
    func reconcileConsumed() {
        var run = MachineRun.live()
        run.acquire(1, mode: .consume)
        run.acquire(2, mode: .consume)
        run.acquire(3, mode: .consume)
        // The reply to the first request was unreadable although the permit was granted. The others were read.
        run.refuse(1)
        run.reply(2, .granted(fence: 7))
        run.acquire(4)
        run.reply(3, .granted(fence: 8))
        _ = run.taken()
        run.apply { $0.gap($1, now: $2) }
        #expect(run.requests[4]?.confirmations == [2])
        #expect(run.taken() == ["send reconcile 5 confirming 3"])
        run.reply(
            5,
            .page(
                next: "",
                [
                    .init(number: 1, state: .granted, fence: 6, name: "x"),
                    .init(number: 2, state: .granted, fence: 7, name: "x"),
                ]))
        #expect(run.taken() == ["send release 6 of 1"])
    }

    @Test("confirmations that the reconciliation's own requests carry do not make their claims unknown")
    func reconcileKeepsConfirmations() {
        var run = MachineRun.live()
        run.acquire(1, mode: .consume)
        run.acquire(2, mode: .consume)
        run.reply(1, .granted(fence: 7))
        run.apply { $0.gap($1, now: $2) }
        #expect(run.requests[3]?.confirmations == [1])
        run.reply(2, .granted(fence: 8))
        _ = run.taken()
        // The release of the unknown claim takes the confirmation of 2 with it, before 2 is compared.
        run.reply(
            3,
            .page(
                next: "",
                [
                    .init(number: 99, state: .held, fence: 6, name: "x"),
                    .init(number: 2, state: .granted, fence: 8, name: "x"),
                ]))
        #expect(run.taken() == ["send release 4 of 99 confirming 2"])
    }

    @Test("a lease that was released by force before the reply arrived is not held")
    func takenAwayEarly() {
        var run = MachineRun.live()
        run.acquire(1)
        run.hint("1 lost")
        run.reply(1, .granted(fence: 7))
        #expect(run.taken() == ["send acquire 1", "finish 1 lost"])
        run.acquire(2)
        run.reply(2, .over)
        #expect(run.taken() == ["send acquire 2", "finish 2 lost"])
    }

    @Test("a lease that is missing in the index is released, so that its permits are not lost permanently")
    func lostHolding() {
        var run = MachineRun.live()
        run.acquire(1)
        run.reply(1, .granted(fence: 7))
        run.apply { $0.gap($1, now: $2) }
        run.reply(2, .page(next: "", []))
        #expect(
            run.taken() == [
                "send acquire 1", "finish 1 granted 7", "send reconcile 2", "lose 1", "send release 3 of 1",
                "event dataLost",
            ])
    }

    @Test("negative or missing numbers in a reply are refused")
    func hostileReplies() {
        let operation = Operation.claim(AcquireRequest(resource: MachineRun.resource))
        func array(_ words: String...) -> RESPValue { .array(words.map { .bytes(Array($0.utf8)) }) }
        #expect(EngineReply(array("granted", "-1"), to: operation) == nil)
        #expect(EngineReply(array("granted", "1", "-1"), to: operation) == nil)
        #expect(EngineReply(array("ended"), to: operation) == nil)
        let page = array("-1", "h", "1", "1", "m")
        #expect(
            EngineReply(.array([array("ok").array![0], array("").array![0], page]), to: .reconcile(after: "")) == nil)
        let dead = array("session", "-1", "m")
        let heartbeat = EngineReply(
            .array([array("ok").array![0], .integer(0), .integer(0), dead, .array([])]), to: .heartbeat)
        guard case .heartbeat(_, _, let work)? = heartbeat else {
            Issue.record("not a heartbeat: \(heartbeat.map { "\($0)" } ?? "nothing")")
            return
        }
        #expect(work.dead?.claims.isEmpty == true)
    }

    @Test("a waiter that Redis has lost is queued again")
    func reconcileQueue() {
        var run = MachineRun.live()
        run.acquire(1)
        run.reply(1, .queued)
        run.apply { $0.gap($1, now: $2) }
        run.reply(2, .page(next: "", []))
        #expect(run.taken() == ["send acquire 1", "send reconcile 2", "send acquire 3", "event dataLost"])
    }

    @Test("a request in flight during the reconciliation is not treated as lost")
    func reconcileUnderWay() {
        var run = MachineRun.live()
        run.acquire(1)
        run.apply { $0.gap($1, now: $2) }
        run.reply(1, .granted(fence: 7))
        run.reply(2, .page(next: "", []))
        #expect(!run.taken().contains("lose 1"))
    }

    @Test("a heartbeat that counts more grants than were seen starts a reconciliation")
    func missedHint() {
        var run = MachineRun.live()
        run.acquire(1)
        run.reply(1, .queued)
        _ = run.taken()
        run.advance(.seconds(5))
        run.reply(2, .heartbeat(grants: 1, claims: 1, .none))
        #expect(run.taken() == ["send heartbeat 2", "send reconcile 3"])
    }
}
