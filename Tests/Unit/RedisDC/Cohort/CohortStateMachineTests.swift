// The state machine of a cohort, without a server, with a clock that the test moves.
import Hiredis
import TestRandom
import Testing

@testable import RedisDC
@testable import RedisDCTestSupport

/// A cohort with a model of everything around it: its tasks, its requests, and Redis.
private struct CohortRun {
    var machine: CohortStateMachine
    var now = Duration.seconds(1)
    let life = SessionLife(id: "s", now: { .zero })
    /// The tasks that wait, in their order, and the one whose turn it is.
    var waiting: [UInt64] = []
    var turn: CohortStateMachine.Turn?
    /// The requests that have not been answered, and those that are to be cancelled.
    var requests: [CohortClaim] = []
    var isCancelled = false
    /// The engine's ids of the claims that this process has in Redis.
    var claims: Set<UInt64> = []
    var lastClaim: UInt64 = 0
    var current: CohortClaim?
    var fence: UInt64 = 1000
    var fences: [UInt64] = []
    var ended: [UInt64: String] = [:]
    /// The turns that were told at their end that they are lost.
    var lostTurns = 0
    /// The comparisons with Redis.
    var checks = 0
    /// The turns since the demand was reported.
    var turnsSinceRecall: Int?
    var faults: [String] = []

    init(limit: Int = 3, linger: Duration = .milliseconds(50)) {
        machine = CohortStateMachine(
            settings: .init(limit: limit, linger: linger, checkInterval: .seconds(5), purpose: "lock")
        ) { CohortClaim { _ in } }
        life.extend(to: .seconds(1_000_000))
    }

    mutating func expect(_ holds: Bool, _ fault: String) { if !holds { faults.append(fault) } }

    mutating func begin(_ new: CohortStateMachine.Turn) {
        expect(turn == nil, "two turns")
        expect(!claims.isEmpty, "a turn without a claim")
        expect(fences.last ?? 0 < new.fence, "fence \(new.fence) after \(fences.last ?? 0)")
        if let turns = turnsSinceRecall {
            turnsSinceRecall = turns + 1
            expect(turns < machine.settings.limit, "more than the limit")
        }
        fences.append(new.fence)
        turn = new
    }

    mutating func request(_ claim: CohortClaim, releasing: UInt64? = nil) {
        expect(requests.isEmpty, "two requests")
        requests.append(claim)
        isCancelled = false
        if let releasing { released(releasing) }
    }

    mutating func released(_ claim: UInt64) {
        expect(claims.remove(claim) != nil, "released a claim twice")
        expect(turn == nil, "released during a turn")
        current = nil
        turnsSinceRecall = nil
    }

    @discardableResult
    mutating func lock(_ limit: WaitLimit? = nil, isAttempt: Bool = false) -> UInt64? {
        switch machine.lock(limit, isAttempt: isAttempt, now: now) {
        case .begin(let turn, _):
            expect(waiting.isEmpty, "a task has passed others")
            begin(turn)
            return nil
        case .fail:
            expect(isAttempt, "no attempt failed")
            return nil
        case .wait(let id):
            waiting.append(id)
            return id
        case .request(let id, let claim):
            waiting.append(id)
            request(claim)
            return id
        case .replace(let id, let claim, let releasing):
            waiting.append(id)
            request(claim, releasing: releasing)
            return id
        }
    }

    mutating func next(_ id: UInt64, _ turn: CohortStateMachine.Turn) {
        expect(waiting.first == id, "not the first waiter")
        waiting.removeAll { $0 == id }
        ended[id] = "turn"
        begin(turn)
    }

    mutating func fail(_ id: UInt64, _ error: RedisDCError) {
        expect(ended.updateValue("\(error.code)", forKey: id) == nil, "\(id) ended twice")
        waiting.removeAll { $0 == id }
    }

    mutating func release() {
        guard let old = turn else { return }
        turn = nil
        switch machine.release(old.number, now: now) {
        case .none: faults.append("the turn had ended")
        case .linger: break
        case .begin(let id, let new, _): next(id, new)
        case .release(let claim): released(claim)
        case .replace(let claim, let releasing): request(claim, releasing: releasing)
        case .lost(let next):
            lostTurns += 1
            // The engine ends the session with all its claims.
            (current, turnsSinceRecall, claims) = (nil, nil, [])
            if let next { request(next) }
        }
    }

    mutating func perform(_ actions: [CohortStateMachine.RequestAction]) {
        for action in actions {
            switch action {
            case .begin(let id, let turn, _): next(id, turn)
            case .fail(let id, let error): fail(id, error)
            case .release(let claim): released(claim)
            case .request(let claim, let releasing): request(claim, releasing: releasing)
            }
        }
    }

    mutating func grant(_ reservation: CohortClaim.Reservation = .unawaited) {
        guard let claim = requests.popLast() else { return }
        lastClaim += 1
        claims.insert(lastClaim)
        expect(claims.count == 1, "two claims")
        current = claim
        fence = max(fence, fences.last ?? 0) + 10
        if reservation != .unawaited { turnsSinceRecall = 0 }
        if claim.demand != .none { turnsSinceRecall = 0 }
        perform(
            machine.granted(
                .init(claim: lastClaim, fence: fence, arrival: reservation.rawValue, life: life, watch: nil), claim,
                now: now))
    }

    mutating func endRequest(_ error: RedisDCError, isAttempt: Bool = false) {
        guard let claim = requests.popLast() else { return }
        perform(machine.requestEnded(claim, error, isAttempt: isAttempt))
    }

    mutating func abandon(_ id: UInt64, _ error: RedisDCError) {
        let isWaiting = waiting.contains(id)
        waiting.removeAll { $0 == id }
        switch machine.abandon(id, error) {
        case .none: expect(!isWaiting || !requests.isEmpty, "a waiter was not ended")
        case .fail(let id, let error): fail(id, error)
        case .cancelRequest: isCancelled = true
        }
    }

    mutating func recall(_ demand: CohortClaim.Demand) {
        guard let claim = current ?? requests.first, claim.demand < demand else { return }
        claim.recall(demand)
        if current != nil { turnsSinceRecall = 0 }
        if let unused = machine.recalled(claim) { released(unused) }
    }

    mutating func lose() {
        guard let claim = current else { return }
        let (isInUse, next) = machine.lost(claim)
        expect(isInUse == (turn != nil), "who has lost it?")
        (turn, current, turnsSinceRecall, claims) = (nil, nil, nil, [])
        if let next { request(next) }
    }

    mutating func tick() {
        for action in machine.tick(now: now) {
            switch action {
            case .abandon(let id, let error): abandon(id, error)
            case .release(let claim): released(claim)
            case .check(_, let claim):
                checks += 1
                machine.checked(claim, end: claim.lastFence + 100, now: now)
            }
        }
    }
}

private let cancelled = RedisDCError(.cancelled, "cancelled")

@Suite("Cohort state machine")
struct CohortStateMachineTests {
    @Test(
        "in random runs one task at a time has the mutex, in order, and every wait ends once",
        arguments: testSeeds(0..<200))
    func random(seed: UInt64) {
        var generator = SplitMix(seed: seed)
        var run = CohortRun(
            limit: Int.random(in: 1...4, using: &generator),
            linger: Bool.random(using: &generator) ? .zero : .milliseconds(30))
        var asked: Set<UInt64> = []
        for _ in 0..<400 {
            run.now += .milliseconds(Int.random(in: 0...10, using: &generator))
            switch Int.random(in: 0..<24, using: &generator) {
            case 0..<6: if let id = run.lock() { asked.insert(id) }
            case 6 where Bool.random(using: &generator):
                if let id = run.lock(isAttempt: true) { asked.insert(id) }
            case 6:
                let timeout = Duration.milliseconds(Int.random(in: 1...40, using: &generator))
                if let id = run.lock(WaitLimit(timeout: timeout, deadline: run.now + timeout)) { asked.insert(id) }
            case 7..<13: run.release()
            case 13..<17: run.grant([.unknown, .unawaited, .awaited].randomElement(using: &generator)!)
            case 17: if run.isCancelled { run.endRequest(cancelled) }
            case 18: if let id = run.waiting.randomElement(using: &generator) { run.abandon(id, cancelled) }
            case 19: run.recall(Bool.random(using: &generator) ? .waiting : .unknown)
            case 20: run.lose()
            case 21: if !run.isCancelled { run.endRequest(RedisDCError(.lost, "the session was lost")) }
            default: run.tick()
            }
            if !run.faults.isEmpty { break }
        }
        // All that is left ends.
        for _ in 0..<1000 where run.faults.isEmpty {
            if run.turn != nil {
                run.release()
            } else if run.isCancelled {
                run.endRequest(cancelled)
                run.isCancelled = false
            } else if !run.requests.isEmpty {
                run.grant()
            } else if !run.claims.isEmpty {
                run.now += .seconds(1)
                run.tick()
            }
        }
        #expect(run.faults.isEmpty, "seed \(seed)")
        #expect(run.waiting.isEmpty && run.claims.isEmpty && run.requests.isEmpty, "seed \(seed)")
        #expect(Set(run.ended.keys) == asked, "seed \(seed)")
    }

    @Test("the scripts reserve as many fences as the process uses")
    func range() throws {
        #expect(try ForeignNode.library("records").contains("local FENCES = \(CohortStateMachine.fences)\n"))
    }

    @Test("the last fence of a range is used once, and then another claim is requested")
    func exhausted() {
        var run = CohortRun()
        run.lock()
        // Nothing is reserved beyond the fence of the grant.
        run.grant(.unknown)
        run.lock()
        run.release()
        #expect(run.turn == nil && run.claims.isEmpty && run.requests.count == 1)
        run.grant()
        #expect(run.turn != nil && run.faults.isEmpty)
    }

    @Test("when the fences run low, more are reserved, and the turns go on")
    func reserves() {
        var run = CohortRun(limit: 1000)
        run.lock()
        run.grant(.unknown)
        // Half of the range is used: the tick asks for more.
        run.tick()
        for _ in 0..<50 {
            run.release()
            run.lock()
        }
        #expect(run.turn != nil && run.requests.isEmpty && run.faults.isEmpty)
    }

    @Test("after a recall `limit` more tasks have their turns, then the claim is replaced")
    func recalled() {
        var run = CohortRun(limit: 3)
        run.lock()
        run.grant()
        for _ in 0..<10 { run.lock() }
        for _ in 0..<4 { run.release() }
        run.recall(.waiting)
        for _ in 0..<3 {
            run.release()
            #expect(run.turn != nil)
        }
        run.release()
        #expect(run.turn == nil && run.requests.count == 1 && run.faults.isEmpty)
    }

    @Test("a recall that overtakes the grant is not forgotten")
    func early() {
        var run = CohortRun(limit: 1)
        run.lock()
        run.lock()
        run.recall(.waiting)
        run.grant()
        run.release()
        #expect(run.turn == nil && run.requests.count == 1 && run.faults.isEmpty)
    }

    @Test("no turn begins in a session that has expired")
    func expired() {
        var run = CohortRun()
        run.lock()
        run.grant()
        run.lock()
        run.life.extend(to: run.now)
        run.release()
        #expect(run.turn == nil && run.requests.count == 1)
        run.life.extend(to: .seconds(1_000_000))
        run.grant()
        run.release()
        run.life.extend(to: run.now)
        run.lock()
        #expect(run.turn == nil && run.requests.count == 1 && run.faults.isEmpty)
    }

    @Test("a turn that ends after its session's end is lost, whether other tasks wait or not", arguments: 0..<4)
    func endsTooLate(waiters: Int) {
        var run = CohortRun(limit: 1000)
        for round in 0..<100 {
            run.life.extend(to: run.now + .seconds(1))
            while run.waiting.count <= waiters { run.lock() }
            run.grant()
            // Suspended in the turn, as by SIGSTOP. What the process does first is to end the turn.
            run.now += .seconds(round % 2 == 0 ? 1 : 100)
            run.release()
            #expect(run.lostTurns == round + 1 && run.turn == nil)
            #expect(run.requests.count == (waiters == 0 ? 0 : 1))
        }
        #expect(run.faults.isEmpty)
    }

    @Test("while tasks take turns, the claim is compared with Redis four times a second, else with each heartbeat")
    func compared() {
        var run = CohortRun(limit: 1000, linger: .seconds(1))
        run.lock()
        run.grant()
        for _ in 0..<1000 {
            run.now += .milliseconds(10)
            run.release()
            run.lock()
            run.tick()
        }
        #expect((38...40).contains(run.checks))
        let before = run.checks
        for _ in 0..<1000 {
            run.now += .milliseconds(60)
            run.tick()
        }
        #expect((11...13).contains(run.checks - before) && run.faults.isEmpty)
    }

    @Test("an attempt that fails does not end the wait of another task")
    func attempt() {
        var run = CohortRun()
        let attempt = run.lock(isAttempt: true)!
        let waiter = run.lock()!
        let another = run.lock(isAttempt: true)!
        run.endRequest(.timedOut("lock", after: .zero), isAttempt: true)
        #expect(run.ended == [attempt: "timedOut", another: "timedOut"] && run.requests.count == 1)
        // The request of the one that waits may take long.
        #expect(run.lock(isAttempt: true) == nil)
        run.grant()
        #expect(run.ended[waiter] == "turn" && run.faults.isEmpty)
    }

    @Test("when an attempt succeeds, those at the same time fail")
    func attempts() {
        var run = CohortRun()
        let first = run.lock(isAttempt: true)!
        let second = run.lock(isAttempt: true)!
        run.grant()
        #expect(run.ended == [first: "turn", second: "timedOut"] && run.faults.isEmpty)
    }
}
