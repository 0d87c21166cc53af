import Hiredis
import Testing

@testable import RedisDC

/// Requests of the state machine that no caller waits for: heartbeats, sweeping, and what follows
/// when the server refuses them.
@Suite("Engine state machine: maintenance")
struct MaintenanceStateMachineTests {
    @Test("all expired sessions of a heartbeat are swept, and another heartbeat follows at once after 64 of them")
    func sweepAll() {
        for count in [63, 64] {
            var run = MachineRun.live()
            run.advance(.seconds(5))
            let expired = (0..<count).map { "dead\($0)" }
            run.reply(1, .heartbeat(notices: 0, isDataLost: false, .init(expired: expired, names: [])))
            #expect(
                run.taken() == ["send heartbeat 1"] + expired.enumerated().map { "send sweep \($0 + 2) of \($1)" })
            run.advance(.milliseconds(10))
            #expect(run.taken() == (count == 64 ? ["send heartbeat 66"] : []))
        }
    }

    @Test("a heartbeat is sent when another session expires, unless the next one is due before")
    func expiryOfAnother() {
        for (expiry, wait) in [(Duration.seconds(3), Duration.milliseconds(3001)), (.seconds(6), .seconds(5))] {
            var run = MachineRun.live()
            run.advance(.seconds(5))
            run.reply(
                1, .heartbeat(notices: 0, isDataLost: false, .init(expired: [], names: [], next: expiry)))
            run.advance(wait - .milliseconds(1))
            #expect(run.taken() == ["send heartbeat 1"])
            run.advance(.milliseconds(1))
            #expect(run.taken() == ["send heartbeat 2"])
        }
    }

    @Test("early heartbeats follow one another for as long as Redis asks for them, and for a second after a sweep")
    func earlyHeartbeats() {
        var run = MachineRun.live()
        run.advance(.seconds(5))
        _ = run.taken()
        /// Expects the next heartbeat after this time.
        func expect(heartbeat number: Int, after wait: Duration) {
            run.advance(wait - .milliseconds(1))
            #expect(run.taken() == [])
            run.advance(.milliseconds(1))
            #expect(run.taken() == ["send heartbeat \(number)"])
        }
        let next = EngineReply.MaintenanceWork(expired: [], names: [], next: .milliseconds(400))
        for number: UInt64 in 1...20 {
            run.reply(number, .heartbeat(notices: 0, isDataLost: false, next))
            expect(heartbeat: Int(number) + 1, after: .milliseconds(401))
        }
        // A session that still exists after its sweep is listed again after a second.
        run.reply(21, .heartbeat(notices: 0, isDataLost: false, .init(expired: ["dead"], names: [])))
        #expect(run.taken() == ["send sweep 22 of dead"])
        expect(heartbeat: 23, after: .milliseconds(1001))
        run.reply(23, .heartbeat(notices: 0, isDataLost: false, .none))
        expect(heartbeat: 24, after: .seconds(5))
    }

    @Test("a call to look at the sessions makes the next heartbeat due, also when one is in flight")
    func called() {
        var run = MachineRun.live()
        run.apply { $0.wakeUpReceived($1, "look", now: $2) }
        run.advance(.zero)
        #expect(run.taken() == ["send heartbeat 1"])
        // That heartbeat may have been answered before the session began that is to be watched.
        run.apply { $0.wakeUpReceived($1, "look", now: $2) }
        run.advance(.zero)
        #expect(run.taken() == [])
        run.reply(1, .heartbeat(notices: 0, isDataLost: false, .none))
        run.advance(.zero)
        #expect(run.taken() == ["send heartbeat 2"])
        run.reply(2, .heartbeat(notices: 0, isDataLost: false, .none))
        run.advance(.seconds(5) - .milliseconds(1))
        #expect(run.taken() == [])
    }

    @Test("the first heartbeat of a session comes early when Redis asks for it")
    func earlyAfterJoin() {
        var run = MachineRun.live(next: .milliseconds(300))
        run.advance(.milliseconds(300))
        #expect(run.taken() == [])
        run.advance(.milliseconds(1))
        #expect(run.taken() == ["send heartbeat 1"])
    }

    @Test(
        "a claim of a dead session that three attempts could not end is set aside, and reported by the process that did so",
        arguments: [0, 1])
    func setAside(count: Int) {
        var run = MachineRun.live()
        let claim = EngineReply.ExpiredClaim(
            id: ClaimID(session: "dead", slot: 0, number: 9), family: .permits, name: "x")
        run.advance(.seconds(5))
        var next: UInt64 = 2
        for attempt in 1...3 {
            run.reply(
                next - 1, .heartbeat(notices: 0, isDataLost: false, .init(expired: ["dead"], names: [])))
            run.reply(next, .sweep(below: 0, [claim]))
            _ = run.taken()
            run.fail(next + 1, RedisDCError(.serverError, "damaged"))
            guard attempt == 3 else {
                #expect(run.taken() == [])
                run.advance(.seconds(5))
                next = run.lastNumber + 1
                continue
            }
            #expect(run.taken() == ["send set aside \(run.lastNumber) of dead:9"])
            run.reply(run.lastNumber, .done(count: count, more: false))
            #expect(run.taken() == (count == 1 ? ["event set aside dead:0:9"] : []))
        }
    }

    /// A request that no caller waits for.
    enum Request: CaseIterable {
        case heartbeat, reconciliation, sweep, end, recheck
    }

    @Test(
        "waits fail with .notPermitted when the server refuses a request that they depend on",
        arguments: Request.allCases)
    func refused(_ request: Request) {
        var run = MachineRun.live()
        run.acquire(1)
        run.reply(1, .granted(fence: 7))
        for id: UInt64 in 2...3 {
            run.acquire(id)
            run.reply(id, .queued())
        }
        run.acquire(4)
        run.advance(.seconds(5))
        _ = run.taken()
        switch request {
        case .heartbeat: run.refuse(5)
        case .reconciliation:
            run.gap()
            run.refuse(6)
        case .sweep, .end, .recheck:
            run.reply(5, .heartbeat(notices: 0, isDataLost: false, .init(expired: ["dead"], names: ["left"])))
            if request == .end {
                let claim = EngineReply.ExpiredClaim(
                    id: ClaimID(session: "dead", slot: 0, number: 9), family: .permits, name: "x")
                run.reply(7, .sweep(below: 0, [claim]))
            }
            run.refuse(request == .recheck ? 6 : request == .sweep ? 7 : 8)
        }
        let first = run.lastNumber - 1
        #expect(run.taken().suffix(2) == ["send release \(first) of 2", "send release \(first + 1) of 3"])
        run.reply(first, .done(count: 1, more: false))
        run.refuse(first + 1)
        #expect(run.taken() == ["finish 2 notPermitted", "finish 3 notPermitted"])
        // The lease is held, and what is requested now receives its own reply.
        run.reply(4, .granted(fence: 8))
        #expect(run.taken() == ["finish 4 granted 8"])
    }

    @Test("a refused heartbeat is reported and repeated after a second, and other failures of one change nothing")
    func refusedHeartbeat() {
        var run = MachineRun.live()
        run.acquire(1)
        run.reply(1, .queued())
        run.advance(.seconds(5))
        _ = run.taken()
        run.fail(2, RedisDCError(.serverError, ""))
        #expect(run.taken() == [])
        run.advance(.milliseconds(200))
        #expect(run.taken() == ["send heartbeat 3"])
        run.refuse(3)
        #expect(run.taken() == ["event refused notPermitted", "send release 4 of 1"])
        run.advance(.milliseconds(999))
        #expect(run.taken() == ["finish 1 notPermitted"])
        run.advance(.milliseconds(1))
        #expect(run.taken() == ["send heartbeat 5"])
    }
}
