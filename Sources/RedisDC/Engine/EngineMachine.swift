// The client's side of the engine as a pure state machine: no I/O, no clock, no continuations.
//
// It owns the session, the requests under way and what becomes of every claim. Each event returns the actions that it
// leads to; `Engine` carries them out. What Redis says counts: hints on the wake-up channel only make it faster.
import DequeModule
import HeapModule
import Hiredis
import Wakeup

struct EngineMachine {
    typealias ID = UInt64

    struct Settings: Sendable {
        var ttl: Duration = .seconds(15) {
            didSet { (margin, heartbeatInterval) = (ttl / 10, ttl / 3) }
        }
        /// How long a caller may be held up, at most, while its cancelled or timed-out wait is settled with Redis.
        var settleTimeout: Duration = .milliseconds(250)
        /// How long an operation that is no wait may take until there is a session.
        var callTimeout: Duration = .seconds(10)
        /// Consumed permits are confirmed with the next request, or after so long.
        var acknowledgeDelay: Duration = .milliseconds(5)
        /// How often waiters ask, when there are no hints.
        var pollInterval: Duration = .seconds(1)
        var failsWaitersOnLoss = false

        // Kept, because dividing durations takes longer than one would think.
        private(set) var margin: Duration = .seconds(15) / 10
        private(set) var heartbeatInterval: Duration = .seconds(15) / 3
    }

    struct Grant: Sendable {
        var claim: ID
        var fence: UInt64
        /// Which arrival at a barrier it was, in which generation.
        var value: UInt64
        var life: SessionLife
        /// Only of a lease: hears when it is lost.
        var watch: LeaseWatch?
    }

    enum Outcome: Sendable {
        case granted(Grant)
        case notAvailable
        case done(Int)
        case values([[UInt8]])
    }

    enum Action {
        /// Listen to the wake-ups of this session, and to no other's.
        case listen(SessionLife)
        case join(SessionLife)
        case send(EngineRequest, after: Duration)
        case finish(ID, Result<Outcome, RedisDCError>)
        /// The lease is not the holder's any more.
        case lose(ID, RedisDCError)
        case event(CoordinatorEvent)
    }

    enum Failure: Error {
        /// The same request may be sent again.
        case retry(RedisError)
        case fatal(RedisDCError)
    }

    /// A script of the engine takes so many confirmations at once.
    static let mostAcknowledged = 100
    /// So many requests of callers are under way at most: more would not be faster, and would take memory for a burst.
    static let mostPending = 512

    // MARK: State

    enum Phase {
        case idle
        /// The channel comes first, so that no wake-up is missed.
        case listening
        case joining
        case live
        case stopped
    }

    struct Claim {
        enum State {
            /// Has to be asked for, when there is a session.
            case idle
            case asked(UInt64)
            case queued(UInt64)
            /// No longer wanted: being ended with the server. The caller gets this error then.
            indirect case leaving(UInt64, RedisDCError)
            case held(UInt64, fence: UInt64)
            case releasing(UInt64, fence: UInt64)
        }
        var state = State.idle
        var wish: Wish
        var hasLetGo = false
        /// Who releases the lease; the claim's own caller waits under the claim's id.
        var releaser: ID?
        var deadline: Duration?

        var number: UInt64? {
            switch state {
            case .idle: nil
            case .asked(let number), .queued(let number), .leaving(let number, _), .held(let number, _),
                .releasing(let number, _):
                number
            }
        }
    }

    struct Call {
        var operation: Operation
        var number: UInt64?
        var mayHaveRun = false
    }

    enum Purpose {
        case claim(ID)
        case end(ID)
        case call(ID)
        case heartbeat(sent: Duration)
        case reconcile(known: Set<UInt64>, found: [EngineReply.Line])
        /// Nobody waits for the answer.
        case chore
    }

    struct Pending {
        var request: EngineRequest
        var purpose: Purpose
        var failures = 0
    }

    struct Deadline: Comparable {
        var at: Duration
        var id: ID
        static func < (a: Deadline, b: Deadline) -> Bool { a.at < b.at }
    }

    let settings: Settings
    let makeSession: () -> SessionLife
    var phase = Phase.idle
    var session: SessionLife
    var epoch: String?
    var window = RequestWindow()
    var pending: [UInt64: Pending] = [:]
    var claims: [ID: Claim] = [:]
    var claimOf: [UInt64: ID] = [:]
    var calls: [ID: Call] = [:]
    /// In the order in which they came: what waits for a session, or for fewer requests to be under way.
    var backlog: Deque<ID> = []
    var deadlines = Heap<Deadline>()
    var acknowledgements: [UInt64] = []
    var acknowledgeAt: Duration?
    var leftovers: [(name: String, number: UInt64)] = []
    var heartbeatAt: Duration?
    var pollAt: Duration?
    var joinedAt: Duration = .zero
    var isBeating = false
    var isReconciling = false
    var reconcilesAgain = false
    var hearsHints = false
    /// Grants by others that have been seen, to compare with the server's count.
    var grants = 0

    init(settings: Settings, makeSession: @escaping () -> SessionLife) {
        self.settings = settings
        self.makeSession = makeSession
        session = makeSession()
    }

    var isLive: Bool { phase == .live }
    var sessionLife: SessionLife { session }

    // MARK: What callers want

    mutating func acquire(
        _ id: ID, _ wish: Wish, deadline: Duration?, now: Duration
    ) -> [Action] {
        guard phase != .stopped else { return [.finish(id, .failure(Self.stopped))] }
        claims[id] = Claim(wish: wish, deadline: deadline)
        if let deadline { remind(id, at: deadline) }
        return expire(now) + begin(id, now)
    }

    mutating func call(_ id: ID, _ operation: Operation, now: Duration) -> [Action] {
        guard phase != .stopped else { return [.finish(id, .failure(Self.stopped))] }
        calls[id] = Call(operation: operation)
        return expire(now) + begin(id, now)
    }

    /// The caller of a wait has given up. Ends with `finish` as soon as it is certain that nothing is held.
    mutating func abandon(_ id: ID, _ error: RedisDCError, now: Duration) -> [Action] {
        guard let claim = claims[id] else { return [] }
        switch claim.state {
        case .idle: return drop(id, error)
        case .asked(let number), .queued(let number):
            claims[id]!.state = .leaving(number, error)
            if case .claim? = pending[number]?.purpose { pending[number]!.purpose = .chore }
            remind(id, at: now + settings.settleTimeout)
            let name = claim.wish.thing.name
            // Who has arrived cannot have gone away before, once the others have passed.
            if claim.wish.way == .arrive { return [send(.leave(name: name, claim: number), .end(id))] }
            return [send(.release(name: name, claim: number), .end(id))]
        case .leaving, .held, .releasing: return []
        }
    }

    /// Gives a lease back. `releaser` gets the outcome; without one nobody waits for it.
    mutating func release(_ id: ID, releaser: ID?, now: Duration) -> [Action] {
        let late = expire(now)
        guard let claim = claims[id], case .held(let number, let fence) = claim.state else {
            let error = RedisDCError(.lost, "it was not held any more")
            return late + (releaser.map { [.finish($0, .failure(error))] } ?? [])
        }
        claims[id]!.state = .releasing(number, fence: fence)
        claims[id]!.releaser = releaser
        return late + [send(.release(name: claim.wish.thing.name, claim: number), .end(id))]
    }

    static var stopped: RedisDCError { RedisDCError(.stopped, "the coordinator has stopped") }

    /// Asks for it now, or when there is a session.
    mutating func begin(_ id: ID, _ now: Duration) -> [Action] {
        guard phase == .live, pending.count < Self.mostPending else {
            postpone(id, now)
            return []
        }
        if let claim = claims[id] {
            let action = send(.claim(claim.wish), .claim(id))
            if case .send(let request, _) = action {
                claims[id]!.state = .asked(request.number)
                claimOf[request.number] = id
            }
            return [action]
        }
        if let call = calls[id] {
            let action = send(call.operation, .call(id))
            if case .send(let request, _) = action { calls[id]!.number = request.number }
            return [action]
        }
        return []
    }

    mutating func send(_ operation: Operation, _ purpose: Purpose) -> Action {
        let isChore = if case .heartbeat = operation { true } else { false }
        let request = EngineRequest(
            session: session.id, number: window.next(), settled: window.news(always: isChore),
            acknowledged: Array(acknowledgements.prefix(Self.mostAcknowledged)), operation: operation)
        acknowledgements.removeFirst(request.acknowledged.count)
        // What does not fit goes at the next look at the clock.
        acknowledgeAt = acknowledgements.isEmpty ? nil : .zero
        pending[request.number] = Pending(request: request, purpose: purpose)
        return .send(request, after: .zero)
    }

    // MARK: What Redis says

    mutating func reply(
        _ request: EngineRequest, _ result: Result<EngineReply, Failure>, now: Duration
    ) -> [Action] {
        var actions = expire(now)
        guard request.session == session.id, let entry = pending[request.number] else { return actions }
        switch result {
        case .failure(.retry(let error)):
            return actions + retry(request.number, error)
        case .failure(.fatal(let error)):
            settle(request.number)
            // What it carried has not arrived.
            acknowledgements = request.acknowledged + acknowledgements
            if !acknowledgements.isEmpty { acknowledgeAt = acknowledgeAt ?? now + settings.heartbeatInterval }
            return actions + failed(entry, error, now) + catchUp(now)
        case .success(.lost(let isOver)):
            return actions + lose(isOver || now >= session.end ? .expired : .dataLost, now)
        case .success(let reply):
            settle(request.number)
            actions += answered(entry, reply, now)
            return actions + catchUp(now)
        }
    }

    /// It will be begun when that is possible. A wait goes on until its deadline; anything else is not kept for ever.
    mutating func postpone(_ id: ID, _ now: Duration) {
        let claim = claims[id]
        guard claim != nil || calls[id] != nil else { return }
        backlog.append(id)
        if claim?.wish.queues != true, claim?.deadline == nil { remind(id, at: now + settings.callTimeout) }
    }

    /// Begins what has waited until fewer requests are under way.
    private mutating func catchUp(_ now: Duration) -> [Action] {
        var actions: [Action] = []
        while phase == .live, pending.count < Self.mostPending, let next = backlog.popFirst() {
            actions += begin(next, now)
        }
        return actions
    }

    mutating func settle(_ number: UInt64) {
        pending[number] = nil
        window.settle(number)
    }

    mutating func retry(_ number: UInt64, _ error: RedisError) -> [Action] {
        pending[number]!.failures += 1
        if case .call(let id) = pending[number]!.purpose, error.commandMayHaveRun { calls[id]?.mayHaveRun = true }
        let pause = Duration.milliseconds(10 << min(pending[number]!.failures - 1, 6))
        return [.send(pending[number]!.request, after: pause)]
    }

    mutating func answered(_ entry: Pending, _ reply: EngineReply, _ now: Duration) -> [Action] {
        switch entry.purpose {
        case .claim(let id): return answeredClaim(id, entry.request.number, reply, now)
        case .end(let id): return ended(id, entry.request.operation, reply, now) + more(entry.request.operation, reply)
        case .call(let id):
            calls[id] = nil
            if case .pass(_, let number, _, _) = entry.request.operation {
                if case .done = reply { claimOf[number].map { forget($0) } } else { keep(number) }
            }
            return [.finish(id, result(of: entry.request.operation, reply))] + more(entry.request.operation, reply)
        case .heartbeat(let sent): return beaten(sent, reply, now)
        case .reconcile(let known, let found): return reconciled(known, found, reply, now)
        case .chore: return more(entry.request.operation, reply)
        }
    }

    mutating func failed(_ entry: Pending, _ error: RedisDCError, _ now: Duration) -> [Action] {
        switch entry.purpose {
        case .claim(let id): return drop(id, error)
        case .end(let id):
            // The session's end will free it.
            guard let claim = claims[id] else { return [] }
            if case .leaving(_, let why) = claim.state { return drop(id, why) }
            forget(id)
            return claim.releaser.map { [.finish($0, .failure(error))] } ?? []
        case .call(let id):
            var error = error
            if calls[id]?.mayHaveRun == true { error.mayHaveRun = true }
            calls[id] = nil
            if case .pass(_, let number, _, _) = entry.request.operation { keep(number) }
            return [.finish(id, .failure(error))]
        case .heartbeat:
            isBeating = false
            heartbeatAt = now + .milliseconds(200)
            return []
        case .reconcile:
            isReconciling = false
            return []
        case .chore: return []
        }
    }

    /// What was to be passed on is still held.
    private mutating func keep(_ number: UInt64) {
        guard let id = claimOf[number], case .releasing(_, let fence)? = claims[id]?.state else { return }
        claims[id]!.state = .held(number, fence: fence)
    }

    mutating func answeredClaim(
        _ id: ID, _ number: UInt64, _ reply: EngineReply, _ now: Duration
    ) -> [Action] {
        guard let claim = claims[id], case .asked(number) = claim.state else { return [] }
        switch reply {
        case .granted(let fence, let value): return granted(id, number, fence, value, now)
        case .queued:
            claims[id]!.state = .queued(number)
            return letGo(for: id, now)
        case .none:
            forget(id)
            return [.finish(id, .success(.notAvailable))]
        default:
            forget(id)
            return [.finish(id, result(of: .claim(claim.wish), reply))]
        }
    }

    mutating func granted(
        _ id: ID, _ number: UInt64, _ fence: UInt64, _ value: UInt64, _ now: Duration
    ) -> [Action] {
        let others = letGo(for: id, now)
        let isLease = claims[id]!.wish.mode != .consume
        let grant = Grant(
            claim: id, fence: fence, value: value, life: session, watch: isLease ? LeaseWatch() : nil)
        if !isLease {
            forget(id)
            acknowledgements.append(number)
            acknowledgeAt = acknowledgeAt ?? now + settings.acknowledgeDelay
        } else {
            claims[id]!.state = .held(number, fence: fence)
        }
        return others + [.finish(id, .success(.granted(grant)))]
    }

    /// It has its place: what it was to let go for it can go.
    private mutating func letGo(for id: ID, _ now: Duration) -> [Action] {
        guard let claim = claims[id], !claim.hasLetGo, case .letsGo(let other)? = claim.wish.detail else { return [] }
        claims[id]!.hasLetGo = true
        return release(other, releaser: nil, now: now)
    }

    /// Whether a lease is held and not being released.
    func holds(_ id: ID) -> Bool {
        if case .held? = claims[id]?.state { true } else { false }
    }

    /// What can be done with a lease, other than ending it.
    enum Use: Sendable {
        /// Gives all but so many of its permits back.
        case reduce(keep: Int)
        case read
        /// Turns it into a permit of another thing.
        indirect case pass(to: Thing, item: [UInt8]?)
    }

    mutating func use(_ id: ID, claim: ID, _ use: Use, now: Duration) -> [Action] {
        let late = expire(now)
        guard let held = claims[claim], case .held(let number, let fence) = held.state else {
            return late + [.finish(id, .failure(RedisDCError(.lost, "it was not held any more")))]
        }
        let name = held.wish.thing.name
        switch use {
        case .reduce(let keep): return late + call(id, .reduce(name: name, claim: number, keep: keep), now: now)
        case .read: return late + call(id, .read(name: name, claim: number), now: now)
        case .pass(let thing, let item):
            claims[claim]!.state = .releasing(number, fence: fence)
            return late + call(id, .pass(thing, claim: number, from: name, item: item), now: now)
        }
    }

    mutating func ended(_ id: ID, _ operation: Operation, _ reply: EngineReply, _ now: Duration) -> [Action] {
        if case .granted(let fence, let value) = reply, case .leave(let name, let number) = operation {
            // It was granted before it could leave. If nobody wants it any more, it goes.
            guard case .leaving? = claims[id]?.state else { return [send(.release(name: name, claim: number), .chore)] }
            return granted(id, number, fence, value, now)
        }
        guard let claim = claims[id] else { return [] }
        switch claim.state {
        case .leaving(_, let error): return drop(id, error)
        case .releasing:
            forget(id)
            // A release whose answer was lost finds nothing the second time: it was held, or the session were lost.
            return claim.releaser.map { [.finish($0, .success(.done(1)))] } ?? []
        default: return []
        }
    }

    mutating func more(_ operation: Operation, _ reply: EngineReply) -> [Action] {
        guard case .done(_, let more) = reply, more else { return [] }
        switch operation {
        case .release, .leave, .give, .destroy, .signal, .resize, .gate, .count, .reduce, .pass:
            return [send(.give(name: operation.name), .chore)]
        case .claim, .create, .read, .heartbeat, .reconcile: return []
        }
    }

    func result(of operation: Operation, _ reply: EngineReply) -> Result<Outcome, RedisDCError> {
        let name = operation.name
        switch reply {
        case .done(let count, _): return .success(.done(count))
        case .values(let values): return .success(.values(values))
        case .none: return .failure(RedisDCError(.lost, "\"\(name)\" was not held any more"))
        case .conflict(let kind, let permits, let policy):
            let found = Thing.describe(Thing.Kind(rawValue: kind), permits: permits, policy: policy)
            return .failure(
                RedisDCError(
                    .conflict, "\"\(name)\" is \(found), which is not what this call wants\(operation.wanted)"))
        case .broken:
            return .failure(
                RedisDCError(
                    .broken, "\"\(name)\" is broken: one who took part has died or given up; destroy it to begin anew"))
        case .missing:
            return .failure(
                RedisDCError(.notFound, "there is no semaphore \"\(name)\"; create it with a number of permits"))
        case .gone: return .failure(RedisDCError(.destroyed, "\"\(name)\" has been destroyed"))
        default: return .failure(RedisDCError(.serverError, "unexpected answer \(reply) for \"\(name)\""))
        }
    }

    mutating func drop(_ id: ID, _ error: RedisDCError) -> [Action] {
        guard claims[id] != nil || calls[id] != nil else { return [] }
        forget(id)
        calls[id] = nil
        return [.finish(id, .failure(error))]
    }

    mutating func forget(_ id: ID) {
        if let number = claims.removeValue(forKey: id)?.number { claimOf[number] = nil }
    }

}

extension Operation {
    fileprivate var wanted: String {
        switch self {
        case .claim(let wish): " (\(wish.thing.description))"
        case .signal(let thing, _), .create(let thing), .resize(let thing, _), .gate(let thing, _),
            .count(let thing, _), .destroy(let thing), .pass(let thing, _, _, _):
            " (\(thing.description))"
        default: ""
        }
    }
}

extension Thing {
    fileprivate var description: String { Self.describe(kind, permits: permits, policy: String(policy)) }

    fileprivate static func describe(_ kind: Kind?, permits: Int?, policy: String) -> String {
        let number = permits.map { "\($0)" } ?? "any number of"
        return switch kind {
        case .semaphore:
            "a semaphore with \(number) permits" + (policy == "b" ? ", barging" : ", first come first served")
        case .readWriteLock:
            "a read-write lock" + (policy == "r" ? ", readers first" : policy == "w" ? ", writers first" : "")
        case .latch: "a latch for \(number), " + (policy == "f" ? "broken by a death" : "a death counts as down")
        case .exchanger: "an exchanger for \(number)"
        case .boundedBuffer: "a bounded buffer for \(number)"
        case .barrier:
            "a barrier for \(number), " + (policy == "b" ? "broken by who leaves" : "who leaves is taken out")
        case let kind?: "a \(kind.title)"
        case nil: "broken or being destroyed"
        }
    }
}
