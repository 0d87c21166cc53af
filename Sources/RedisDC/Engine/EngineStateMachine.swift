// The client's side of the engine as a pure state machine: no I/O, no clock, no continuations.
//
// It owns the session, the requests under way and what becomes of every claim. Each event returns the actions that it
// leads to; `Engine` carries them out. What Redis says counts: hints on the wake-up channel only make it faster.
//
// Here: its state, and what callers want. What Redis answers is in +Replies, what it says unasked in +Reconcile, the
// session's life in +Session, clocks and deadlines in +Time.
import DequeModule
import HeapModule
import Hiredis
import CoordinationBase

struct EngineStateMachine {
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
    static let maxAcknowledged = 100
    /// So many requests of callers are under way at most: more would not be faster, and would take memory for a burst.
    static let maxPending = 512

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
        var request: AcquireRequest
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
        case background
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
        _ id: ID, _ request: AcquireRequest, deadline: Duration?, now: Duration
    ) -> [Action] {
        guard phase != .stopped else { return [.finish(id, .failure(Self.stopped))] }
        claims[id] = Claim(request: request, deadline: deadline)
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
            if case .claim? = pending[number]?.purpose { pending[number]!.purpose = .background }
            remind(id, at: now + settings.settleTimeout)
            let name = claim.request.resource.name
            // Who has arrived cannot have gone away before, once the others have passed.
            if claim.request.way == .arrive { return [send(.leave(name: name, claim: number), .end(id))] }
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
        return late + [send(.release(name: claim.request.resource.name, claim: number), .end(id))]
    }

    static var stopped: RedisDCError { RedisDCError(.stopped, "the coordinator has stopped") }

    /// Asks for it now, or when there is a session.
    mutating func begin(_ id: ID, _ now: Duration) -> [Action] {
        guard phase == .live, pending.count < Self.maxPending else {
            postpone(id, now)
            return []
        }
        if let claim = claims[id] {
            let action = send(.claim(claim.request), .claim(id))
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
        let isBackground = if case .heartbeat = operation { true } else { false }
        let request = EngineRequest(
            session: session.id, number: window.next(), settled: window.news(always: isBackground),
            acknowledged: Array(acknowledgements.prefix(Self.maxAcknowledged)), operation: operation)
        acknowledgements.removeFirst(request.acknowledged.count)
        // What does not fit goes at the next look at the clock.
        acknowledgeAt = acknowledgements.isEmpty ? nil : .zero
        pending[request.number] = Pending(request: request, purpose: purpose)
        return .send(request, after: .zero)
    }
}
