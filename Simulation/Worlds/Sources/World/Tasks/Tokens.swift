// Permits that are consumed and signalled, of semaphores and turnstiles: none is lost, none is doubled.
@testable import RedisDC

extension SimulatedTask {
    func useTokens() async throws {
        let resource = Resource(name: "tokens \(resourceNumber)", kind: .semaphore, permits: 2)
        let judge = world.family(TokenJudge.self)
        judge.declare(resource.name, permits: 2)
        if isOne(in: 2) { try await consume(resource, judge) } else { try await signal(resource, judge) }
    }

    /// Turnstiles that are only passed and admit, and one that is locked and unlocked as well.
    func useTurnstile() async throws {
        if isOne(in: 2) { return try await useGate() }
        let resource = Resource(name: "turnstile \(resourceNumber)", kind: .turnstile, permits: 1)
        let judge = world.family(TokenJudge.self)
        judge.declare(resource.name, permits: 1)
        if isOne(in: 2) { try await consume(resource, judge) } else { try await signal(resource, judge) }
    }

    private func consume(_ resource: Resource, _ judge: TokenJudge) async throws {
        let count = number(1...2)
        // Until the result is here, the process may die with the permits.
        judge.count(resource.name) { $0.maybeConsumed += count }
        let operation = recordCall("wait", resource.name, count: count)
        let result = try await acquire(Acquire(resource: resource, count: count), timeout: timeout)
        recordEnd(operation, result.outcome)
        if result.grant != nil {
            judge.count(resource.name) { $0.isConsumed(count) }
            for _ in 0..<count { process.consumes(resource.name) }
        } else if !result.isUnknown {
            judge.count(resource.name) { $0.maybeConsumed -= count }
        }
    }

    private func signal(_ resource: Resource, _ judge: TokenJudge) async throws {
        let count = number(1...2)
        judge.count(resource.name) { $0.maybeSignalled += count }
        let operation = recordCall("signal", resource.name, count: count)
        let result = try await call(Signal(resource, count: count))
        recordEnd(operation, result.outcome)
        if result.answer != nil {
            judge.count(resource.name) { $0.isSignalled(count) }
        } else if !result.isUnknown {
            judge.count(resource.name) { $0.maybeSignalled -= count }
        }
    }

    // MARK: A gate

    private func useGate() async throws {
        let gate = Resource(name: "gate", kind: .turnstile, permits: 0)
        let judge = world.family(GateJudge.self)
        switch number(0...4) {
        case 0, 1:
            let isOpen = isOne(in: 2)
            judge.begins()
            let result = try await call(SetTurnstile(turnstile: gate, isOpen: isOpen))
            judge.ends(isOpen, result)
        default:
            let (begin, end) = (judge.changes, judge.state)
            let isAttempt = isOne(in: 3)
            judge.beginsWait()
            let result: Finish
            do {
                result = try await acquire(Acquire(resource: gate), timeout: isAttempt ? .zero : longTimeout)
                judge.endsWait(hasPassed: result.grant != nil)
            } catch {
                judge.endsWait(hasPassed: false)
                throw error
            }
            guard begin == judge.changes, world.judge.losses == 0 else { return }
            // A dead session returns what it has consumed lately.
            if end == .locked, world.isCalm(for: 3 * world.longestTTL) {
                world.check(result.grant == nil, "\(process.name) has passed the gate, which was locked all the time")
            } else if end == .open, case .success(.notAvailable) = result {
                world.violation("\(process.name) was refused at the gate, which was open all the time")
            }
        }
    }
}

/// Counts permits that are consumed and signalled.
final class TokenJudge: FamilyJudge {
    /// The knowledge of the permits of a resource.
    struct Tokens {
        var signalled = 0
        var maybeSignalled = 0
        var consumed = 0
        var maybeConsumed = 0

        /// Permits that may have been consumed certainly were.
        mutating func isConsumed(_ count: Int) {
            (maybeConsumed, consumed) = (maybeConsumed - count, consumed + count)
        }
        /// A permit that was consumed may be there again.
        mutating func doubtConsumed() { (maybeConsumed, consumed) = (maybeConsumed + 1, consumed - 1) }
        /// Permits that may have been signalled certainly were.
        mutating func isSignalled(_ count: Int) {
            (maybeSignalled, signalled) = (maybeSignalled - count, signalled + count)
        }
    }

    private unowned let world: World
    private var tokens: [String: Tokens] = [:]
    private(set) var initial: [String: Int] = [:]

    init(_ world: World) { self.world = world }

    func declare(_ name: String, permits: Int) { initial[name] = permits }

    func count(_ name: String, _ change: (inout Tokens) -> Void) { change(&tokens[name, default: Tokens()]) }

    func checkEnd(_ ledger: Ledger) {
        if world.judge.hasUnknownLoss { return }
        for (name, permits) in initial.sorted(by: { $0.key < $1.key }) {
            let counts = tokens[name] ?? Tokens()
            let free = ledger.resources[name]?.free ?? permits
            let least = permits + counts.signalled - counts.consumed - counts.maybeConsumed
            let most = permits + counts.signalled + counts.maybeSignalled - counts.consumed
            world.check(
                (least...max(least, most)).contains(free),
                "\(name) has \(free) permits, expected \(least) to \(most): \(counts)")
        }
    }
}

/// Knows whether a turnstile is certainly open, or certainly locked.
private final class GateJudge: FamilyJudge {
    enum State { case open, locked, unknown }

    private(set) var state = State.locked
    /// The number of changes that have begun or ended.
    private(set) var changes = 0
    /// The changes whose end is not known. One may happen at any later time.
    private var underWay = 0
    private var hasOverlapped = false
    /// A wait that was granted a pass before the gate was locked, and is then cancelled, returns it afterwards: one more
    /// passes. So a gate is certainly locked only if no wait was under way, or was given up lately, when it was locked.
    private var waits = 0
    private var givenUp: Time?
    private unowned let world: World

    init(_ world: World) { self.world = world }

    func beginsWait() { waits += 1 }

    func endsWait(hasPassed: Bool) {
        waits -= 1
        if !hasPassed { givenUp = world.now }
    }

    func begins() {
        (state, hasOverlapped) = (.unknown, hasOverlapped || underWay > 0)
        (changes, underWay) = (changes + 1, underWay + 1)
    }

    func ends(_ isOpen: Bool, _ result: SimulatedTask.Finish) {
        changes += 1
        if result.isUnknown { return }
        underWay -= 1
        guard underWay == 0 else { return }
        let mayReturn = waits > 0 || givenUp.map { world.now - $0 < 2 * world.longestTTL } ?? false
        if !hasOverlapped, result.answer != nil, isOpen || !mayReturn { state = isOpen ? .open : .locked }
        hasOverlapped = false
    }

    func checkEnd(_ ledger: Ledger) {}
}
