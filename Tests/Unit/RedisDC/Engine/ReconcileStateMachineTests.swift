import Hiredis
import Testing

@testable import RedisDC

/// The state machine after missed wake-ups: reconciliation with Redis, and replies that no script
/// sends.
@Suite("Engine state machine: reconciliation")
struct ReconcileStateMachineTests {
    @Test("after a gap a missed grant is delivered, an unknown claim is released and a missing lease is lost")
    func reconcile() {
        var run = MachineRun.live()
        for id: UInt64 in 1...3 { run.acquire(id) }
        run.reply(1, .granted(fence: 7))
        run.reply(2, .queued())
        run.reply(3, .queued())
        _ = run.taken()
        run.gap()
        #expect(run.taken() == ["send reconcile 4"])
        // 1 is missing, 2 has been granted, 3 still waits, 77 is unknown.
        run.reply(
            4,
            .page(
                next: 0,
                [
                    .init(number: 2, state: .held, fence: 9, name: "x"),
                    .init(number: 3, state: .waiting, fence: 5, name: "x"),
                    .init(number: 77, state: .held, fence: 6, name: "y"),
                ]))
        #expect(
            run.taken() == [
                "finish 2 granted 9", "send force 5 of session1:77", "lose 1", "send release 6 of 1",
                "event dataLost",
            ])
    }

    @Test("an undelivered consumed permit is returned, one whose confirmation is due or in flight is not")
    func reconcileConsumed() {
        var run = MachineRun.live()
        for id: UInt64 in 1...4 { run.acquire(id, mode: .consume) }
        // The reply to the first request was unreadable although the permit was granted. The others were read.
        run.refuse(1)
        for number: UInt64 in 2...4 { run.reply(number, .granted(fence: 1)) }
        // This request uses the slot of 4 again, which confirms it.
        run.acquire(5)
        run.advance(EngineStateMachine.Settings().confirmationDelay)
        run.acquire(6, mode: .consume)
        run.reply(7, .granted(fence: 1))
        _ = run.taken()
        run.gap()
        #expect(run.taken() == ["send reconcile 8"])
        let listed = [1, 2, 3, 4, 7].map {
            EngineReply.Line(slot: Int($0) - 1, number: $0, state: .granted, fence: 1, name: "x")
        }
        run.reply(8, .page(next: 0, listed))
        #expect(run.taken() == ["send force 9 of session1:1"])
    }

    @Test(
        "the late reply to a request whose grant was seen before does not replace a later confirmation",
        arguments: [false, true])
    func lateReply(isRefused: Bool) {
        var run = MachineRun.live()
        run.acquire(1, mode: .consume)
        run.reply(1, .granted(fence: 1))
        // In the slot of 1, whose permit it confirms.
        run.acquire(2, mode: .consume)
        run.fail(2)
        run.wakeUp("2 1")
        run.acquire(3, mode: .consume)
        #expect(run.requests[2]?.slot == run.requests[1]?.slot && run.requests[3]?.slot == 1)
        run.reply(3, .granted(fence: 1))
        if isRefused { run.refuse(2) } else { run.reply(2, .stale) }
        _ = run.taken()
        run.advance(.milliseconds(6))
        #expect(run.taken() == ["send confirm 4 of 2,3"])
    }

    @Test("claims that have ended since the list was requested are no loss, because the list may be read again later")
    func endedMeanwhile() {
        var run = MachineRun.live()
        for id: UInt64 in 1...2 { run.acquire(id) }
        run.reply(1, .granted(fence: 7))
        run.reply(2, .queued())
        _ = run.taken()
        run.gap()
        #expect(run.taken() == ["send reconcile 3"])
        run.cancel(2)
        run.reply(4, .done(count: 1, more: false))
        _ = run.taken()
        run.reply(3, .page(next: 0, [.init(number: 1, state: .held, fence: 7, name: "x")]))
        #expect(run.taken() == [])
    }

    @Test("a grant that overtakes the list of claims is not taken for a loss")
    func grantOvertakes() {
        var run = MachineRun.waiting()
        run.gap()
        run.wakeUp("1 9")
        run.reply(2, .page(next: 0, [.init(number: 1, state: .waiting, fence: 3, name: "x")]))
        #expect(run.taken() == ["send reconcile 2", "finish 1 granted 9"])
    }

    @Test("a consumed permit whose confirmation Redis has lost is confirmed again, one that was refused is returned")
    func confirmedAgain() {
        var run = MachineRun.live()
        for id: UInt64 in 1...2 { run.acquire(id, mode: .consume) }
        run.reply(1, .granted(fence: 1))
        run.reply(2, .queued())
        run.cancel(2)
        run.reply(3, .done(count: 1, more: false))
        run.advance(EngineStateMachine.Settings().confirmationDelay)
        run.reply(4, .done(count: 1, more: false))
        _ = run.taken()
        run.gap()
        let listed = [1, 2].map {
            EngineReply.Line(slot: Int($0) - 1, number: $0, state: .granted, fence: 1, name: "x")
        }
        run.reply(5, .page(next: 0, listed))
        #expect(run.taken() == ["send reconcile 5", "send force 6 of session1:2", "send confirm 7 of 1"])
    }

    @Test("on a new connection the heartbeat and the list of claims come first")
    func reconnected() throws {
        var run = MachineRun.holding()
        run.call(1) { $0.release(1, releaser: nil, now: $1) }
        run.reply(2, .done(count: 1, more: false))
        _ = run.taken()
        run.apply { $0.reconnected(now: $2) }
        #expect(run.taken() == ["send heartbeat 3", "send reconcile 4"])
        let heartbeat = try #require(run.heartbeat(3))
        #expect(heartbeat.seen == .ended(slot: 0, number: 1))
        #expect(heartbeat.fence == 7)
    }

    @Test("a claim that another one has ended fails with the reason that Redis has kept")
    func endedByOthers() {
        var run = MachineRun.live()
        for id: UInt64 in 1...3 { run.acquire(id) }
        for number: UInt64 in 1...2 { run.reply(number, .queued()) }
        run.reply(3, .granted(fence: 7))
        _ = run.taken()
        run.gap()
        run.reply(
            4,
            .page(
                next: 0,
                ["gone", "broken", "lost"].enumerated().map { index, word in
                    .init(slot: index, number: UInt64(index + 1), state: .ended(word: word), fence: 0, name: word)
                }))
        #expect(run.taken() == ["send reconcile 4", "finish 1 destroyed", "finish 2 broken", "lose 3"])
    }

    @Test("a lease that was released by force before the reply arrived is not held")
    func takenAwayEarly() {
        var run = MachineRun.live()
        run.acquire(1)
        run.wakeUp("1 lost")
        run.reply(1, .granted(fence: 7))
        #expect(run.taken() == ["send acquire 1", "finish 1 lost"])
        run.acquire(2)
        run.reply(2, .over())
        #expect(run.taken() == ["send acquire 2", "finish 2 lost"])
    }

    @Test("replies with negative or missing numbers are refused")
    func hostileReplies() {
        let operation = Acquire(resource: MachineRun.resource)
        func words(_ words: String...) -> [RESPValue] { words.map { .bytes(Array($0.utf8)) } }
        #expect(EngineReply(.array([.integer(-1), .integer(1)]), to: operation) == nil)
        #expect(EngineReply(.array(words("more")), to: operation) == nil)
        #expect(EngineReply(.array(words("conflict", "mf")), to: operation) == nil)
        #expect(EngineReply(.array(words("conflict")), to: operation) == nil)
        #expect(EngineReply(.integer(-2), to: operation) == nil)
        #expect(EngineReply(.integer(-1), to: Recheck(name: "x")) == nil)
        #expect(EngineReply(.array([]), to: operation) == nil)
        let line: [RESPValue] = [
            .integer(0), .integer(-1), words("h")[0], .integer(1), .integer(1), words("m")[0], words("x")[0],
        ]
        let list = ListClaims(session: "s", from: 0, listsAll: false)
        #expect(EngineReply(.array(words("ok") + [.integer(0), .array(line)]), to: list) == nil)
        let claims = RESPValue.array(words("session:-1", "m", "x"))
        #expect(EngineReply(.array(words("ok") + [.integer(0), claims]), to: Sweep(session: "s", below: nil)) == nil)
    }

    @Test("a request in flight during the reconciliation is not treated as lost")
    func reconcileUnderWay() {
        var run = MachineRun.live()
        run.acquire(1)
        run.gap()
        run.reply(1, .granted(fence: 7))
        run.reply(2, .page(next: 0, []))
        #expect(!run.taken().contains("lose 1"))
    }

    @Test("a heartbeat that counts more notices than were received starts a reconciliation")
    func missedWakeUp() {
        var run = MachineRun.waiting()
        run.advance(.seconds(5))
        run.replyToHeartbeat(2, notices: 1)
        #expect(run.taken() == ["send heartbeat 2", "send reconcile 3"])
    }

    @Test("a wake-up that a heartbeat has overtaken is not counted twice, so the next lost wake-up is found")
    func overtakenWakeUp() {
        var run = MachineRun.waiting(3)
        run.advance(.seconds(5))
        run.replyToHeartbeat(4, notices: 1)
        #expect(run.taken() == ["send heartbeat 4", "send reconcile 5"])
        run.reply(5, .page(next: 0, (1...3).map { .init(number: $0, state: .waiting, fence: 3, name: "x") }))
        run.wakeUp(notices: 1, "1 7")
        #expect(run.taken() == ["finish 1 granted 7"])
        run.advance(.seconds(5))
        run.replyToHeartbeat(6, notices: 2)
        #expect(run.taken() == ["send heartbeat 6", "send reconcile 7"])
    }

    @Test("a wake-up that overtakes the reply to a heartbeat causes no reconciliation")
    func overtakingWakeUp() {
        var run = MachineRun.waiting()
        run.advance(.seconds(5))
        run.wakeUp(notices: 1, "1 7")
        _ = run.taken()
        run.replyToHeartbeat(2, notices: 0)
        run.advance(.seconds(5))
        run.replyToHeartbeat(3, notices: 1)
        #expect(run.taken() == ["send heartbeat 3"])
    }

    @Test("a wake-up that shows that one before it was lost starts a reconciliation at once")
    func wakeUpAfterLostOne() {
        var run = MachineRun.waiting(2)
        run.wakeUp(notices: 2, "2 8")
        #expect(run.taken() == ["send reconcile 3", "finish 2 granted 8"])
    }

    @Test("fewer notices than were known when the heartbeat was sent start a reconciliation")
    func noticesLost() {
        var run = MachineRun.waiting()
        run.wakeUp(notices: 1, "1 7")
        _ = run.taken()
        run.advance(.seconds(5))
        run.replyToHeartbeat(2, notices: 0)
        #expect(run.taken() == ["send heartbeat 2", "send reconcile 3"])
    }

    @Test("a wake-up that was not counted for the present connection is not believed")
    func foreignWakeUp() throws {
        var run = MachineRun.waiting()
        run.apply { $0.reconnected(now: $2) }
        let connection = try #require(run.heartbeat(2)).connection
        #expect(connection == 1)
        run.replyToHeartbeat(2, notices: connection << 32)
        run.reply(3, .page(next: 0, [.init(number: 1, state: .waiting, fence: 3, name: "x")]))
        _ = run.taken()
        // Counted by an old master; by nobody; not a number.
        for notices: UInt64 in [1, 0, connection << 32, .max] { run.wakeUp(notices: notices, "1 7") }
        #expect(run.taken() == ["send reconcile 4"])
        run.wakeUp(notices: connection << 32 + 1, "1 8")
        #expect(run.taken() == ["finish 1 granted 8"])
    }

    @Test("expired sessions are swept: their claims are ended, and a second pass deletes them")
    func sweep() {
        var run = MachineRun.holding()
        run.advance(.seconds(5))
        run.reply(2, .heartbeat(notices: 0, isDataLost: false, .init(expired: ["dead"], names: ["left"])))
        #expect(run.taken() == ["send heartbeat 2", "send recheck 3 of left", "send sweep 4 of dead"])
        let claim = EngineReply.ExpiredClaim(
            id: ClaimID(session: "dead", slot: 200, number: 9), family: .permits, name: "x")
        run.reply(4, .sweep(below: 128, [claim]))
        #expect(run.taken() == ["send end 5 of dead:9", "send sweep 6 of dead below 128"])
        run.reply(6, .sweep(below: 0, []))
        #expect(run.taken() == ["send sweep 7 of dead"])
        run.reply(7, .sweep(below: 0, []))
        #expect(run.taken() == [])
    }

    @Test(
        "a request in a slot that Redis believes occupied, or used by a later request, is made again in another one",
        arguments: [EngineReply.occupied, .stale])
    func occupied(reply: EngineReply) {
        var run = MachineRun.live()
        run.acquire(1)
        run.reply(1, reply)
        #expect(run.taken() == ["send acquire 1", "event dataLost", "send reconcile 2", "send acquire 3"])
        #expect(run.requests[1]?.slot == 0 && run.requests[3]?.slot == 1)
    }

    @Test(
        "a request for a claim that nobody wants any more is not made again", arguments: [EngineReply.occupied, .stale])
    func abandoned(reply: EngineReply) {
        var run = MachineRun.live()
        run.acquire(1)
        run.cancel(1)
        _ = run.taken()
        run.reply(1, reply)
        let isLost = if case .occupied = reply { true } else { false }
        #expect(run.taken() == (isLost ? ["event dataLost", "send reconcile 3"] : []))
        run.reply(2, .done(count: 1, more: false))
        #expect(run.taken() == ["finish 1 cancelled"])
    }

    @Test(
        "a claim that was made after its end was answered, because Redis has lost that end, is ended again",
        arguments: [false, true])
    func endedTooEarly(overtakes: Bool) {
        var run = MachineRun.live()
        run.acquire(1)
        run.fail(1)
        run.cancel(1)
        _ = run.taken()
        // The reply of the end may overtake that of the request.
        if overtakes {
            run.reply(2, .done(count: 0, more: false))
            #expect(run.taken() == ["finish 1 cancelled"])
            run.reply(1, .queued())
            #expect(run.taken() == ["send force 3 of session1:1"])
        } else {
            run.reply(1, .granted(fence: 7))
            #expect(run.taken() == [])
            run.reply(2, .done(count: 0, more: false))
            #expect(run.taken() == ["finish 1 cancelled", "send force 3 of session1:1"])
        }
    }

    @Test("a lease that was released while its request was repeated is not taken again", arguments: [1, 0])
    func releasedWhileRequested(count: Int) {
        var run = MachineRun.live()
        run.acquire(1)
        run.fail(1)
        run.wakeUp("1 7")
        run.call(9) { $0.release(1, releaser: 9, now: $1) }
        _ = run.taken()
        run.reply(1, .granted(fence: 7))
        run.reply(2, .done(count: count, more: false))
        #expect(run.taken() == (count == 1 ? ["finish 9"] : ["finish 9 lost", "send force 3 of session1:1"]))
    }

    @Test(
        "a consumed permit whose request, repeated, queues again on a master that has lost the grant, is not waited for",
        arguments: [0, 1])
    func queuedAfterGrant(failures: Int) {
        var run = MachineRun.live()
        run.acquire(1, mode: .consume)
        for _ in 0..<failures { run.fail(1) }
        run.wakeUp("1 1")
        _ = run.taken()
        run.reply(1, .queued())
        // A request that was not repeated has queued before its grant.
        #expect(run.taken() == (failures > 0 ? ["send reconcile 2"] : []))
        guard failures > 0 else { return }
        run.reply(2, .page(next: 0, [.init(number: 1, state: .waiting, fence: 3, name: "x")]))
        #expect(run.taken() == ["send force 3 of session1:1", "event dataLost"])
    }

    @Test("the late reply of a repeated request whose grant was confirmed ends nothing on the same master")
    func queuedBeforeGrant() {
        var run = MachineRun.live()
        run.acquire(1, mode: .consume)
        run.fail(1)
        run.wakeUp("1 1")
        run.reply(1, .queued())
        _ = run.taken()
        run.reply(2, .page(next: 0, [.init(number: 1, state: .granted, fence: 1, name: "x")]))
        #expect(run.taken() == [])
    }

    @Test("a reply of the connection before, which arrives after the new one has begun, counts as lost")
    func replyOfEarlierConnection() {
        var run = MachineRun.holding()
        run.acquire(2)
        run.call(9) { $0.release(1, releaser: 9, now: $1) }
        run.apply { $0.reconnected(now: $2) }
        _ = run.taken()
        run.reply(2, .granted(fence: 8))
        run.reply(3, .done(count: 1, more: false))
        #expect(run.taken() == ["send acquire 2", "send release 3 of 1"])
        // The new server has neither the grant nor the release.
        run.reply(2, .queued())
        run.reply(3, .done(count: 1, more: false))
        #expect(run.taken() == ["finish 9"])
    }

    @Test("a request that another family serves is sent again with the same number, and so is the claim's release")
    func otherFamily() {
        var run = MachineRun.live()
        run.acquire(1)
        run.reply(1, .family(.groups))
        #expect(run.requests[1]?.family == .groups)
        run.reply(1, .granted(fence: 7))
        run.call(9) { $0.release(1, releaser: 9, now: $1) }
        #expect(run.taken() == ["send acquire 1", "send acquire 1", "finish 1 granted 7", "send release 2 of 1"])
        guard (run.requests[2]?.operation as? Release)?.family == .groups else {
            Issue.record("the release is not for groups")
            return
        }
    }
}
