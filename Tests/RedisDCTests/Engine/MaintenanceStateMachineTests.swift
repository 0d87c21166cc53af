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
                1, .heartbeat(notices: 0, isDataLost: false, .init(expired: [], names: [], nextExpiry: expiry)))
            run.advance(wait - .milliseconds(1))
            #expect(run.taken() == ["send heartbeat 1"])
            run.advance(.milliseconds(1))
            #expect(run.taken() == ["send heartbeat 2"])
        }
    }

    @Test("an early heartbeat is followed by another only when it has found an expired session, and not at once")
    func earlyHeartbeats() {
        func live(_ first: EngineReply.MaintenanceWork, after wait: Duration) -> MachineRun {
            var run = MachineRun.live()
            run.advance(.seconds(5))
            run.reply(1, .heartbeat(notices: 0, isDataLost: false, first))
            run.advance(wait)
            return run
        }
        /// Expects the next heartbeat after this time.
        func expect(heartbeat number: Int, after wait: Duration, _ run: inout MachineRun) {
            run.advance(wait - .milliseconds(1))
            #expect(run.taken() == [])
            run.advance(.milliseconds(1))
            #expect(run.taken() == ["send heartbeat \(number)"])
        }
        let next = EngineReply.MaintenanceWork(expired: [], names: [], nextExpiry: .milliseconds(400))
        var found = live(next, after: .milliseconds(401))
        #expect(found.taken() == ["send heartbeat 1", "send heartbeat 2"])
        // Sessions that have ended almost at the same time are found together.
        let more = EngineReply.MaintenanceWork(expired: ["dead"], names: [], nextExpiry: .milliseconds(1))
        found.reply(2, .heartbeat(notices: 0, isDataLost: false, more))
        #expect(found.taken() == ["send sweep 3 of dead"])
        expect(heartbeat: 4, after: .milliseconds(251), &found)
        // A session that still exists after its sweep is listed again after a second.
        let last = EngineReply.MaintenanceWork(expired: ["dead"], names: [])
        found.reply(4, .heartbeat(notices: 0, isDataLost: false, last))
        #expect(found.taken() == ["send sweep 5 of dead"])
        expect(heartbeat: 6, after: .milliseconds(1001), &found)
        found.reply(6, .heartbeat(notices: 0, isDataLost: false, .none))
        expect(heartbeat: 7, after: .seconds(5), &found)

        // The session was extended, or another process has received it.
        var unfound = live(next, after: .milliseconds(401))
        #expect(unfound.taken() == ["send heartbeat 1", "send heartbeat 2"])
        unfound.reply(2, .heartbeat(notices: 0, isDataLost: false, next))
        expect(heartbeat: 3, after: .seconds(5), &unfound)
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
            run.apply { $0.gap($1, now: $2) }
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
