import Hiredis
import TestSupport
import Testing

@testable import RedisDC

/// Claims that the process has given up, or was refused, stay so, whatever arrives late.
@Suite("Engine state machine: given up and refused")
struct RefusalStateMachineTests {
    @Test("permits that Redis has granted to 100,000 given-up waits are returned, and none counts as consumed")
    func givenUp() {
        var run = MachineRun.live()
        let count: UInt64 = 100_000
        for id in 1...count {
            run.acquire(id, mode: .consume)
            run.reply(id, .queued())
        }
        for id in 1...count { run.cancel(id) }
        run.advance(EngineStateMachine.Settings().settleTimeout)
        let finished = run.taken().count { $0.hasPrefix("finish ") }
        #expect(finished == count)
        // The connection is back, and Redis has granted permits to all waits while it was lost.
        run.gap()
        let listed = (1...count).map {
            EngineReply.Line(
                slot: run.requests[$0]?.slot ?? 0, number: $0, state: .granted, fence: 1, name: MachineRun.resource.name
            )
        }
        run.reply(run.lastNumber, .page(next: 0, listed))
        let actions = run.taken()
        #expect(actions.count { $0.hasPrefix("send force ") } == count)
        #expect(actions.filter { $0.hasPrefix("send confirm ") } == [])
    }

    @Test(
        "a given-up claim that a failover brings back is ended, also if later ones in its slot were given up",
        arguments: [1, 2, 1000])
    func broughtBack(later: UInt64) {
        var run = MachineRun.live()
        run.acquire(1, mode: .consume)
        run.reply(1, .queued())
        run.cancel(1)
        run.reply(2, .done(count: 1, more: false))
        for id in 2...(1 + later) {
            run.acquire(id, mode: .consume)
            run.reply(run.lastNumber, .queued())
            run.cancel(id)
            run.reply(run.lastNumber, .done(count: 1, more: false))
        }
        let slots = Set(run.requests.values.compactMap(\.slot))
        #expect(slots == [0])
        _ = run.taken()
        run.gap()
        // The new master has the grant of the first, and lacks all that came after it.
        let listed = EngineReply.Line(slot: 0, number: 1, state: .granted, fence: 1, name: MachineRun.resource.name)
        run.reply(run.lastNumber, .page(next: 0, [listed]))
        #expect(run.taken().last == "send force \(run.lastNumber) of session1:1")
    }

    /// The replies that refuse a request and leave no trace of it in its slot.
    private static let refusals: [EngineReply] = [.none, .conflict(kind: "sf", permits: 5), .missing, .gone, .broken]

    @Test("a refusal counts at once if the request was sent once", arguments: refusals)
    func once(refusal: EngineReply) {
        var run = MachineRun.live()
        run.acquire(1)
        // This attempt did not reach the connection.
        run.fail(1, mayHaveRun: false)
        _ = run.taken()
        run.reply(1, refusal)
        #expect(run.taken().allSatisfy { $0.hasPrefix("finish 1") })
        #expect(run.unanswered.isEmpty)
    }

    @Test("a refusal of a request of which a copy may still arrive counts when its slot shows it", arguments: refusals)
    func settled(refusal: EngineReply) {
        var run = MachineRun.live()
        run.acquire(1)
        run.call(2) { $0.call(2, Signal(MachineRun.resource, count: 1), now: $1) }
        for number: UInt64 in 1...2 { run.fail(number) }
        _ = run.taken()
        for number: UInt64 in 1...2 {
            let slot = run.requests[number]?.slot
            run.reply(number, refusal)
            #expect(run.taken() == ["send settle \(number)"])
            #expect(run.requests[number]?.slot == slot)
            // The reply to the settling request is lost too.
            run.fail(number)
            #expect(run.taken() == ["send settle \(number)"])
            run.reply(number, .settled)
            let actions = run.taken()
            #expect(actions.count == 1)
            #expect(actions.allSatisfy { $0.hasPrefix("finish \(number)") && !$0.hasSuffix("may have run") })
        }
        // Both slots are free again.
        run.acquire(3)
        run.acquire(4)
        #expect(Set([run.requests[3]?.slot, run.requests[4]?.slot]) == [0, 1])
    }

    @Test("a copy that arrives between a refusal and its confirmation has the effect that its caller receives")
    func inBetween() {
        var run = MachineRun.live()
        run.acquire(1, Acquire(resource: MachineRun.resource, mode: .lease, mayQueue: false))
        run.call(2) { $0.call(2, Signal(MachineRun.resource, count: 1), now: $1) }
        for number: UInt64 in 1...2 { run.fail(number) }
        run.reply(1, .none)
        run.reply(2, .missing)
        _ = run.taken()
        run.reply(1, .granted(fence: 7))
        run.reply(2, .done(count: 1, more: false))
        #expect(run.taken() == ["finish 1 granted 7", "finish 2"])
    }

    @Test("an error after an attempt whose reply was lost counts when its slot shows it")
    func refusedByError() {
        var run = MachineRun.live()
        run.acquire(1)
        run.fail(1)
        run.fail(1, RedisDCError(.outOfMemory, ""))
        run.reply(1, .settled)
        #expect(run.taken().suffix(2) == ["send settle 1", "finish 1 outOfMemory"])
        // Redis refuses the second request too: it is not known whether a copy will take effect, so the slot is not used
        // again.
        run.acquire(2)
        run.fail(2)
        run.reply(2, .none)
        run.refuse(2)
        #expect(run.taken().suffix(2) == ["send settle 2", "finish 2 notPermitted may have run"])
        run.acquire(3)
        #expect(run.requests[3]?.slot != run.requests[2]?.slot)
    }

    @Test("a claim that is given up while its refusal is confirmed is released, which has the same effect")
    func givenUpInBetween() {
        var run = MachineRun.live()
        run.acquire(1)
        run.fail(1)
        run.reply(1, .gone)
        _ = run.taken()
        run.cancel(1)
        run.reply(1, .settled)
        #expect(run.taken() == ["send release 2 of 1"])
        run.reply(2, .done(count: 0, more: false))
        #expect(run.taken() == ["finish 1 cancelled"])
    }

    @Test(
        "a release that finds no lease fails, unless an attempt before it may have ended the lease",
        arguments: [false, true])
    func releasedBefore(mayHaveRun: Bool) {
        var run = MachineRun.holding()
        run.call(9) { $0.release(1, releaser: 9, now: $1) }
        run.fail(2, mayHaveRun: mayHaveRun)
        run.reply(2, .done(count: 0, more: false))
        #expect(run.taken().last == (mayHaveRun ? "finish 9" : "finish 9 lost"))
    }

    // MARK: The backlog

    /// Returns the resources of the requests for claims that the run has sent since the last call.
    private func names(_ run: inout MachineRun) -> [String] {
        run.takenActions().compactMap {
            if case .send(let request) = $0, let acquire = request.operation as? Acquire {
                acquire.resource.name
            } else {
                nil
            }
        }
    }

    private func acquire(_ run: inout MachineRun, _ id: UInt64) {
        run.acquire(id, Acquire(resource: Resource(name: "r\(id)", kind: .mutex, permits: 1), mode: .lease))
    }

    @Test("after a request in an occupied slot was given up, the oldest request of the backlog is sent before new ones")
    func occupiedAndGivenUp() {
        var run = MachineRun.live()
        // The comparison with Redis runs already, so the occupied slot adds no other request.
        run.gap()
        let most = UInt64(EngineStateMachine.maxPending)
        for id in 1...(most + 1) { acquire(&run, id) }
        run.cancel(1)
        run.reply(run.lastNumber, .done(count: 0, more: false))
        _ = names(&run)
        // This reply makes room.
        run.reply(2, .occupied)
        acquire(&run, 9000)
        #expect(names(&run) == ["r\(most)"])
    }

    @Test("a request in an occupied slot is made again before those of the backlog")
    func occupiedWithoutRoom() {
        var run = MachineRun.live()
        let most = UInt64(EngineStateMachine.maxPending)
        for id in 1...(most + 2) { acquire(&run, id) }
        _ = names(&run)
        // The comparison with Redis takes the room of this request.
        run.reply(1, .occupied)
        #expect(names(&run) == [])
        for number: UInt64 in 2...3 { run.reply(number, .queued()) }
        #expect(names(&run) == ["r1", "r\(most + 1)"])
    }
}
