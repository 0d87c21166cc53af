import Hiredis
import Testing

@testable import RedisDC

/// The state machine on the connection to a promoted replica: it does again what was confirmed and is lost.
@Suite("Engine state machine: repair")
struct RepairStateMachineTests {
    private static let semaphore = Resource(name: "s", kind: .semaphore, permits: 0)

    /// A live session in which these operations were confirmed, in slots from 0 on, by requests numbered from 1.
    private static func confirmed(_ operations: [any EngineOperation]) -> MachineRun {
        var run = MachineRun.live()
        for (index, operation) in operations.enumerated() { run.call(UInt64(index) + 1) { $0.call($1, operation) } }
        for number in operations.indices { run.reply(UInt64(number) + 1, .done(count: 1, more: false)) }
        _ = run.taken()
        return run
    }

    private static func signals(_ count: Int) -> MachineRun {
        confirmed((0..<count).map { _ in Signal(semaphore, count: 1) })
    }

    private static func line(_ slot: Int, _ number: UInt64, _ state: EngineReply.Line.State) -> EngineReply.Line {
        EngineReply.Line(slot: slot, number: number, state: state, fence: 1, name: "s")
    }

    private static func idle(_ slot: Int, _ number: UInt64) -> EngineReply.Line {
        line(slot, number, .ended(word: ""))
    }

    @Test("lost requests are repeated in their slots, in the order of their numbers, before anything else is sent")
    func signals() {
        var run = Self.signals(3)
        run.reconnected()
        #expect(run.taken() == ["send heartbeat 4", "send reconcile 5"])
        #expect(run.first == [4, 5])
        // A call of a new caller waits for the connection.
        run.call(9) { $0.call($1, Signal(Self.semaphore, count: 7)) }
        #expect(run.taken() == ["send signal 6"])
        run.reply(4, .heartbeat(notices: 0, isDataLost: true, .none))
        #expect(run.isComparing)
        run.reply(5, .page(next: 0, [Self.idle(0, 1), Self.idle(1, 0)]))
        #expect(run.taken() == ["send signal 2", "send signal 3"])
        #expect(run.first == [2, 3] && run.requests[2]?.slot == 1 && run.requests[3]?.slot == 2)
        run.reply(3, .done(count: 1, more: false))
        #expect(run.isComparing)
        run.reply(2, .done(count: 1, more: false))
        #expect(run.taken() == ["event repaired 2"] && !run.isComparing)
        // The next server may lack them as well.
        run.reconnected()
        run.reply(7, .heartbeat(notices: 0, isDataLost: true, .none))
        run.reply(8, .page(next: 0, []))
        #expect(
            run.taken() == ["send heartbeat 7", "send reconcile 8", "send signal 1", "send signal 2", "send signal 3"])
    }

    @Test("nothing is repeated if the server has the last change")
    func nothingLost() {
        var run = Self.signals(2)
        run.reconnected()
        run.reply(4, .page(next: 0, [Self.idle(0, 1), Self.idle(1, 2)]))
        run.reply(3, .heartbeat(notices: 0, isDataLost: false, .none))
        #expect(run.taken() == ["send heartbeat 3", "send reconcile 4"] && !run.isComparing)
    }

    @Test("a grant that only a message has brought is missed too, though the server has all that was answered")
    func lostGrantOfMessage() {
        var run = Self.signals(1)
        run.acquire(2, Acquire(resource: Self.semaphore))
        run.wakeUp("2 1")
        run.fail(2)
        #expect(run.taken() == ["send acquire 2", "finish 2 granted 1"])
        run.reconnected()
        run.reply(3, .heartbeat(notices: 1 << 32, isDataLost: false, .none))
        run.reply(4, .page(next: 0, [Self.idle(0, 1)]))
        #expect(run.taken() == ["send heartbeat 3", "send reconcile 4", "send acquire 5"])
        run.reply(5, .granted(fence: 1))
        #expect(run.taken() == ["finish 9223372036854775809 granted 1", "event repaired 1"])
    }

    @Test("a slot serves no other request before the one for its claim is answered")
    func slotOfUnanswered() {
        var run = MachineRun.live()
        run.acquire(1, Acquire(resource: Self.semaphore))
        run.wakeUp("1 1")
        run.acquire(2, Acquire(resource: Self.semaphore))
        #expect(run.requests[2]?.slot == 1)
        run.reply(1, .granted(fence: 1))
        run.acquire(3, Acquire(resource: Self.semaphore))
        #expect(run.requests[3]?.slot == 0)
        // The end of a claim that was given up may be answered first.
        run.cancel(2)
        run.reply(4, .done(count: 0, more: false))
        run.acquire(5, Acquire(resource: Self.semaphore))
        #expect(run.requests[5]?.slot == 2)
        _ = run.taken()
        // It has made the claim later. That ends before the slot is used again.
        run.reply(2, .granted(fence: 2))
        #expect(run.taken() == ["send force 6 of session1:2"])
        run.acquire(7, Acquire(resource: Self.semaphore))
        #expect(run.requests[7]?.slot == 3)
        run.reply(6, .done(count: 1, more: false))
        run.acquire(8, Acquire(resource: Self.semaphore))
        #expect(run.requests[8]?.slot == 1)
    }

    @Test(
        "a request whose outcome a message has brought is not repeated, and frees its slot", arguments: ["1", "gone"])
    func outcomeOfMessage(word: String) {
        var run = MachineRun.live()
        run.acquire(1, Acquire(resource: Self.semaphore))
        run.wakeUp("1 \(word)")
        _ = run.taken()
        run.fail(1)
        run.acquire(2, Acquire(resource: Self.semaphore))
        #expect(run.taken() == ["send acquire 2"] && run.requests[2]?.slot == 0)
    }

    @Test("what a repetition consumes that was on its way, when its consumption is repeated otherwise, is returned")
    func consumedByRepetition() {
        var run = MachineRun.live()
        run.acquire(1, Acquire(resource: Self.semaphore))
        // The connection breaks, and the request waits for the next one. Meanwhile its grant arrives.
        run.fail(1)
        run.wakeUp("1 1")
        _ = run.taken()
        run.reconnected()
        run.reply(2, .heartbeat(notices: 1 << 32, isDataLost: true, .none))
        run.reply(3, .page(next: 0, []))
        #expect(run.taken() == ["send heartbeat 2", "send reconcile 3", "send acquire 4"])
        run.reply(4, .granted(fence: 1))
        _ = run.taken()
        run.sendsAgain(1)
        run.reply(1, .granted(fence: 2))
        #expect(run.taken() == ["send force 5 of session1:1"])
    }

    @Test("a connection that ends during the comparison is followed by another comparison")
    func interrupted() {
        var run = Self.signals(2)
        run.reconnected()
        run.reply(3, .heartbeat(notices: 0, isDataLost: true, .none))
        run.reply(4, .page(next: 0, [Self.idle(0, 1)]))
        #expect(run.taken() == ["send heartbeat 3", "send reconcile 4", "send signal 2"])
        run.reconnected()
        // The late failure of the repetition has no effect.
        run.fail(2)
        #expect(run.taken() == ["send heartbeat 5", "send reconcile 6"])
        run.reply(5, .heartbeat(notices: 0, isDataLost: true, .none))
        run.reply(6, .page(next: 0, [Self.idle(0, 1)]))
        // The server may refuse it now, because the semaphore is gone. A copy that comes late must not take effect then.
        run.reply(2, .missing)
        #expect(run.taken() == ["send signal 2", "send settle 2"])
        run.reply(2, .settled)
        #expect(run.taken() == ["send signal 7"] && !run.isComparing)
        // Its creation comes later.
        run.reply(7, .missing)
        #expect(run.taken() == ["send signal 8"])
        run.reply(8, .done(count: 1, more: false))
        #expect(run.taken() == ["event repaired 1"])
    }

    @Test("what is refused for too long is reported as lost")
    func refused() {
        var run = Self.signals(1)
        run.reconnected()
        run.reply(2, .heartbeat(notices: 0, isDataLost: true, .none))
        run.reply(3, .page(next: 0, []))
        run.reply(1, .missing)
        _ = run.taken()
        run.now += EngineStateMachine.repairPatience
        run.reply(4, .missing)
        #expect(run.taken() == ["event dataLost"])
    }

    @Test("permits whose consumption is lost are consumed again, ahead of others, and what waits for them ends")
    func consumed() {
        var run = MachineRun.live()
        let request = Acquire(resource: Self.semaphore)
        run.acquire(1, request)
        run.acquire(2, request)
        run.reply(1, .granted(fence: 1))
        run.reply(2, .queued())
        run.wakeUp("2 1")
        _ = run.taken()
        run.reconnected()
        run.reply(3, .heartbeat(notices: 1 << 32, isDataLost: true, .none))
        // The request of the first one is lost, and the grant of the second one.
        run.reply(4, .page(next: 0, [Self.line(1, 2, .waiting)]))
        let sent = run.taken()
        #expect(
            sent == [
                "send heartbeat 3", "send reconcile 4", "send acquire 5", "send force 6 of session1:2",
                "send acquire 7",
            ])
        for number in [5, 7] as [UInt64] {
            #expect((run.requests[number]?.operation as? Acquire)?.isPreferred == true)
            // In a slot that no other request has used.
            #expect(run.requests[number]?.slot ?? 0 > 1)
        }
        run.reply(5, .granted(fence: 1))
        run.reply(6, .done(count: 1, more: false))
        run.reply(7, .queued())
        #expect(run.taken().last == "event repaired 2" && !run.isComparing)
        // Others have taken them.
        run.advance(EngineStateMachine.repairPatience)
        #expect(run.taken().contains("send release 8 of 7"))
        run.reply(8, .done(count: 1, more: false))
        #expect(run.taken().last == "event dataLost")
    }

    @Test("a grant that a wake-up brings after the list of claims is not taken for a lost one")
    func grantAfterList() {
        var run = MachineRun.live()
        run.acquire(1, Acquire(resource: Self.semaphore))
        run.reply(1, .queued())
        _ = run.taken()
        run.reconnected()
        run.wakeUp(notices: 1 << 32 + 1, "1 1")
        run.reply(2, .heartbeat(notices: 1 << 32, isDataLost: false, .none))
        run.reply(3, .page(next: 0, [Self.line(0, 1, .waiting)]))
        #expect(
            !run.taken().contains { $0.hasPrefix("event") || $0.hasPrefix("force") || $0.hasPrefix("send acquire") })
    }

    @Test("a passed barrier whose meeting is lost is reported: nobody can repeat it alone")
    func barrier() {
        var run = MachineRun.live()
        let barrier = Resource(name: "b", kind: .barrier, permits: 2, policy: "o")
        run.acquire(1, Acquire(resource: barrier, action: .arrive))
        run.reply(1, .granted(fence: 1))
        _ = run.taken()
        run.reconnected()
        run.reply(2, .heartbeat(notices: 0, isDataLost: true, .none))
        run.reply(3, .page(next: 0, []))
        #expect(run.taken() == ["send heartbeat 2", "send reconcile 3", "event dataLost"])
    }

    @Test("the release of a claim that is missing waits until the requests before it in the slot are repeated")
    func releaseInSlot() {
        var run = Self.signals(1)
        run.acquire(2)
        run.reply(2, .queued())
        _ = run.taken()
        #expect(run.requests[2]?.slot == 0)
        run.reconnected()
        run.reply(3, .heartbeat(notices: 0, isDataLost: true, .none))
        run.reply(4, .page(next: 0, []))
        let sent = run.taken().filter { $0.hasPrefix("send") }
        #expect(sent.contains("send release 5 of 2") && sent.contains("send signal 1"))
        #expect(run.first == [1])
    }

    @Test("operations of a session that Redis has lost with everything else are carried out in the next one")
    func everythingLost() {
        var run = Self.signals(2)
        run.call(9) { $0.call($1, Signal(Self.semaphore, count: 7)) }
        run.reply(3, .lost(isExpired: false))
        run.listening()
        run.joined(epoch: "another")
        let actions = run.taken()
        #expect(actions.suffix(4) == ["event dataLost", "event started", "send signal 1", "send signal 2"])
        run.reply(1, .done(count: 1, more: false))
        run.reply(2, .done(count: 1, more: false))
        #expect(run.taken() == ["event repaired 2"])
    }

    @Test("operations of a session that another process has ended are not carried out again")
    func ended() {
        var run = Self.signals(2)
        run.call(9) { $0.call($1, Signal(Self.semaphore, count: 7)) }
        run.reply(3, .lost(isExpired: false))
        run.listening()
        run.joined()
        #expect(run.taken().last == "event started")
    }

    @Test("operations of a young session that a new server lacks are carried out again, unless others have swept it")
    func young() {
        for isSwept in [false, true] {
            var run = Self.signals(2)
            run.reconnected()
            run.reply(3, .lost(isExpired: false))
            run.listening()
            run.joined(lastMayHaveExpired: isSwept)
            #expect(run.taken().last == (isSwept ? "event started" : "send signal 2"))
        }
        // Redis knows what was swept within a minute.
        var run = Self.signals(2)
        run.reconnected()
        run.reply(3, .lost(isExpired: false))
        run.advance(.seconds(31))
        run.listening()
        run.joined()
        #expect(run.taken().last == "event started")
    }

    @Test("what is remembered of equal operations is one, and different ones stay different")
    func equalOperations() {
        let (one, two) = (Self.semaphore, Resource(name: "t", kind: .semaphore, permits: 0))
        let operations: [any EngineOperation] = [
            Signal(one, count: 1), Signal(one, count: 2), Signal(two, count: 1), Signal(one.existing, count: 1),
            Signal(one, count: 1), Create(one), Signal(one, count: 1), Acquire(resource: one),
            Acquire(resource: one, count: 2), Acquire(resource: one, mayQueue: false), Acquire(resource: one),
            Acquire(resource: one, isPreferred: true), Acquire(resource: one, mode: .lease), Signal(one, count: 1),
        ]
        var effects = ConfirmedEffects(time: .seconds(1), maxBytes: 1 << 20)
        for (index, operation) in (operations + operations).enumerated() {
            let request = EngineRequest(session: "a", number: UInt64(index), slot: index, operation: operation)
            effects.append(request, at: .zero)
        }
        for (effect, operation) in zip(effects.effects, operations + operations) {
            #expect(type(of: effect.request.operation) == type(of: operation))
            #expect(effect.request.operation.name == operation.name)
            #expect(effect.request.operation.arguments == operation.arguments)
        }
        // Many of the same are one object.
        for number in 0..<10 {
            let wait = Acquire(resource: one)
            effects.append(EngineRequest(session: "a", number: UInt64(100 + number), operation: wait), at: .zero)
        }
        #expect(Set(effects.effects.suffix(10).map { ObjectIdentifier($0.request.operation as! Acquire) }).count == 1)
    }

    @Test("effects are forgotten by age and by size, and the loss of a forgotten one is reported")
    func forgotten() {
        var effects = ConfirmedEffects(time: .seconds(1), maxBytes: 1000)
        func request(_ number: UInt64) -> EngineRequest {
            EngineRequest(
                session: "s", number: number, slot: Int(number), operation: Signal(Self.semaphore, count: 1))
        }
        for number: UInt64 in 1...4 { effects.append(request(number), at: .zero) }
        #expect(effects.effects.map(\.request.number) == [2, 3, 4])
        #expect(effects.lastForgotten?.request.number == 1)
        effects.append(request(5), at: .seconds(2))
        #expect(effects.effects.map(\.request.number) == [5] && effects.lastForgotten?.request.number == 4)

        var run = Self.signals(1)
        for number: UInt64 in 2...8 {
            run.advance(.seconds(5))
            run.replyToHeartbeat(number, notices: 0)
        }
        run.call(9) { $0.call($1, Signal(Self.semaphore, count: 1)) }
        run.reply(9, .done(count: 1, more: false))
        _ = run.taken()
        run.reconnected()
        run.reply(10, .heartbeat(notices: 0, isDataLost: true, .none))
        run.reply(11, .page(next: 0, []))
        #expect(run.taken().last == "send signal 9")
        run.reply(9, .done(count: 1, more: false))
        #expect(run.taken() == ["event repaired 1", "event dataLost"])
    }

    @Test("what is too old when a comparison begins is not repeated but reported")
    func forgottenWhenIdle() {
        var run = Self.signals(2)
        for number: UInt64 in 3...9 {
            run.advance(.seconds(5))
            run.replyToHeartbeat(number, notices: 0)
        }
        _ = run.taken()
        run.reconnected()
        run.reply(10, .heartbeat(notices: 0, isDataLost: true, .none))
        run.reply(11, .page(next: 0, []))
        #expect(run.taken() == ["send heartbeat 10", "send reconcile 11", "event dataLost"])
    }
}

extension EngineStateMachine {
    fileprivate mutating func call(_ now: Duration, _ operation: any EngineOperation) -> CallAction {
        call(calls.keys.max().map { $0 + 1 } ?? 1000, operation, now: now)
    }
}
