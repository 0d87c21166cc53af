// The client's side of the engine as a pure state machine: no I/O, no clock, no continuations.
//
// It owns the session, the requests in flight, and the state of every claim. Each event returns the actions that follow
// from it, in an enum of its own that is declared above the event's method; `Engine` carries them out. Only what Redis
// replies counts. Hints on the wake-up channel make it faster.
//
// Here: the state, and the events that callers cause. +Session: how a session begins and ends. +Replies: replies of
// Redis. +Hints: what arrives on the channel, and the comparison with Redis after a gap. +Time: deadlines and heartbeats.
import CoordinationBase
import DequeModule
import HeapModule
import Hiredis

struct EngineStateMachine {
    typealias ID = UInt64
    typealias Finish = Result<Outcome, RedisDCError>

    struct Settings: Sendable {
        var ttl: Duration = .seconds(15) {
            didSet { (margin, heartbeatInterval) = (ttl / 10, ttl / 3) }
        }
        /// The longest time that a caller waits for its cancelled or timed-out wait to be settled with Redis.
        var settleTimeout: Duration = .milliseconds(250)
        /// The longest time that an operation other than a wait may wait for a session.
        var callTimeout: Duration = .seconds(10)
        /// Consumed permits are confirmed with the next request, or after this time.
        var acknowledgeDelay: Duration = .milliseconds(5)
        /// How often the machine asks for grants when there are no hints.
        var pollInterval: Duration = .seconds(1)
        var failsWaitersOnLoss = false

        // Stored, because dividing durations is slow.
        private(set) var margin: Duration = .seconds(15) / 10
        private(set) var heartbeatInterval: Duration = .seconds(15) / 3
    }

    /// What a granted request has received.
    struct Grant: Sendable {
        var claim: ID
        var fence: UInt64
        /// The generation and index of an arrival at a barrier: see ``EngineReply/granted(fence:value:)``.
        var value: UInt64
        var life: SessionLife
        /// Notified when the lease is lost. `nil` when the permits were consumed.
        var watch: LeaseWatch?
    }

    /// How an operation has ended, if it has not failed.
    enum Outcome: Sendable {
        case granted(Grant)
        case notAvailable
        case done(Int)
        case values([[UInt8]])
    }

    /// Why a request was not answered.
    enum Failure: Error {
        /// The same request may be sent again.
        case retry(RedisError)
        case fatal(RedisDCError)
    }

    /// The maximum number of confirmations in one request. The scripts take no more.
    static let maxAcknowledged = 100
    /// The maximum number of requests in flight. More would not be faster, and a burst would take more memory.
    static let maxPending = 512

    // MARK: State

    enum Phase {
        case idle
        /// Subscribing to the wake-up channel. It comes first, so that no wake-up is missed.
        case subscribing
        case joining(since: Duration, Channel)
        case live(Session)
        case stopped(Leftovers?)
    }

    /// A claim on permits or on a place, from the caller's request to its release.
    struct Claim {
        enum State {
            /// Has to be requested when there is a session and room for a request.
            case idle
            case requested(UInt64)
            case queued(UInt64)
            /// No longer wanted: being ended with the server. The caller gets this error then.
            indirect case abandoned(UInt64, RedisDCError)
            case held(UInt64, fence: UInt64)
            /// The operation, if any, that gets the outcome of the release.
            case releasing(UInt64, fence: UInt64, ID?)
        }
        var state = State.idle
        var request: AcquireRequest
        /// How long the caller waits at most; `nil` for no limit.
        var timeout: Duration?
        /// Whether the claim that this one replaces (`AcquireRequest.Detail.releases`) has been released.
        var hasReleasedOther = false

        /// The number of the request that made the claim.
        var number: UInt64? {
            switch state {
            case .idle: nil
            case .requested(let number), .queued(let number), .abandoned(let number, _), .held(let number, _),
                .releasing(let number, _, _):
                number
            }
        }
    }

    /// An operation that is not a claim.
    struct Call {
        var operation: Operation
        var number: UInt64?
        var mayHaveRun = false
    }

    struct Deadline: Comparable {
        var at: Duration
        var id: ID
        static func < (a: Deadline, b: Deadline) -> Bool { a.at < b.at }
    }

    let settings: Settings
    let makeSession: () -> SessionLife
    var phase = Phase.idle
    /// The session that lives, or the next one.
    var life: SessionLife
    /// The epoch of the last session. A different one means that Redis has lost its data.
    var epoch: String?
    var claims: [ID: Claim] = [:]
    var calls: [ID: Call] = [:]
    /// Claims and calls that wait for a session, or for a request in flight to be answered, in the order in which they came.
    var backlog: Deque<ID> = []
    var deadlines = Heap<Deadline>()

    init(settings: Settings, makeSession: @escaping () -> SessionLife) {
        self.settings = settings
        self.makeSession = makeSession
        life = makeSession()
    }

    var isLive: Bool { if case .live = phase { true } else { false } }
    var isStopped: Bool { if case .stopped = phase { true } else { false } }

    /// The live session. There must be one.
    var live: Session {
        // The underscored accessors change it in place; `get` and `set` would copy its tables.
        _read {
            guard case .live(let session) = phase else { preconditionFailure("there is no live session") }
            yield session
        }
        _modify {
            guard case .live(var session) = phase else { preconditionFailure("there is no live session") }
            phase = .idle
            defer { phase = .live(session) }
            yield &session
        }
    }

    // MARK: Callers

    /// What follows from a call of a caller.
    enum CallAction {
        case none
        case send(EngineRequest)
        /// The caller's operation fails.
        case fail(RedisDCError)
        /// The session had expired. Then the caller's operation may fail too.
        case sessionEnded([SessionEndAction], failure: RedisDCError?)
    }

    /// Acquires permits, or waits for them.
    mutating func acquire(_ id: ID, _ request: AcquireRequest, limit: WaitLimit?, now: Duration) -> CallAction {
        if isStopped { return .fail(Self.stopped) }
        claims[id] = Claim(request: request, timeout: limit?.timeout)
        if let limit { remind(id, at: limit.deadline) }
        return afterExpiry(now) { $0.begin(id, now).map { .send($0) } ?? .none }
    }

    /// Carries out an operation that is not a claim.
    mutating func call(_ id: ID, _ operation: Operation, now: Duration) -> CallAction {
        if isStopped { return .fail(Self.stopped) }
        return afterExpiry(now) { $0.beginCall(id, operation, now).map { .send($0) } ?? .none }
    }

    /// Releases a lease. The operation `releaser` gets the outcome; without one nobody waits for it.
    mutating func release(_ id: ID, releaser: ID?, now: Duration) -> CallAction {
        afterExpiry(now) { machine in
            if let request = machine.beginRelease(id, releaser: releaser) { return .send(request) }
            return releaser == nil ? .none : .fail(machine.notHeld(id))
        }
    }

    /// What can be done with a lease, other than releasing it.
    enum Use: Sendable {
        /// Releases all but `keep` of its permits.
        case reduce(keep: Int)
        case read
        /// Turns it into a permit of another resource.
        indirect case pass(to: Resource, item: [UInt8]?)
    }

    /// Uses a lease that is held.
    mutating func use(_ id: ID, claim: ID, _ use: Use, now: Duration) -> CallAction {
        afterExpiry(now) { machine in
            guard let held = machine.claims[claim], case .held(let number, let fence) = held.state else {
                return .fail(machine.notHeld(claim))
            }
            let name = held.request.resource.name
            let operation: Operation
            switch use {
            case .reduce(let keep): operation = .reduce(name: name, claim: number, keep: keep)
            case .read: operation = .read(name: name, claim: number)
            case .pass(let resource, let item):
                machine.claims[claim]!.state = .releasing(number, fence: fence, nil)
                operation = .pass(resource, claim: number, from: name, item: item)
            }
            return machine.beginCall(id, operation, now).map { .send($0) } ?? .none
        }
    }

    /// What follows from a caller's cancellation or timeout.
    enum AbandonAction {
        case none
        case send(EngineRequest)
        case fail(ID, RedisDCError)
    }

    /// The caller of a wait has given up. The wait fails as soon as it is certain that nothing is held.
    mutating func abandon(_ id: ID, _ error: RedisDCError, now: Duration) -> AbandonAction {
        guard let claim = claims[id] else { return .none }
        switch claim.state {
        case .idle:
            forget(id)
            return .fail(id, error)
        case .requested(let number), .queued(let number):
            claims[id]!.state = .abandoned(number, error)
            if case .claim? = live.pending[number]?.purpose { live.pending[number]!.purpose = .background }
            remind(id, at: now + settings.settleTimeout)
            let name = claim.request.resource.name
            // A party must not leave a barrier once the others have passed with it.
            let end: Operation =
                claim.request.way == .arrive
                ? .leave(name: name, claim: number) : .release(name: name, claim: number)
            return .send(send(end, .end(id)))
        case .abandoned, .held, .releasing: return .none
        }
    }

    /// Whether a lease is held and not being released.
    func holds(_ id: ID) -> Bool {
        if case .held? = claims[id]?.state { true } else { false }
    }

    // MARK: Beginning an operation

    /// Ends an expired session first: nothing may be begun in it.
    private mutating func afterExpiry(
        _ now: Duration, _ event: (inout EngineStateMachine) -> CallAction
    ) -> CallAction {
        guard isExpired(at: now) else { return event(&self) }
        let end = endSession(.expired, now)
        if case .fail(let error) = event(&self) { return .sessionEnded(end, failure: error) }
        return .sessionEnded(end, failure: nil)
    }

    /// Requests a claim or call now, or postpones it until there is a session and room for a request.
    mutating func begin(_ id: ID, _ now: Duration) -> EngineRequest? {
        guard isLive, live.pending.count < Self.maxPending else {
            postpone(id, now)
            return nil
        }
        if let claim = claims[id] {
            let request = send(.claim(claim.request), .claim(id))
            claims[id]!.state = .requested(request.number)
            live.claimIDs[request.number] = id
            return request
        }
        guard let call = calls[id] else { return nil }
        let request = send(call.operation, .call(id))
        calls[id]!.number = request.number
        return request
    }

    private mutating func beginCall(_ id: ID, _ operation: Operation, _ now: Duration) -> EngineRequest? {
        calls[id] = Call(operation: operation)
        return begin(id, now)
    }

    /// `nil` when the lease is not held.
    mutating func beginRelease(_ id: ID, releaser: ID?) -> EngineRequest? {
        guard let claim = claims[id], case .held(let number, let fence) = claim.state else { return nil }
        claims[id]!.state = .releasing(number, fence: fence, releaser)
        return send(.release(name: claim.request.resource.name, claim: number), .end(id))
    }

    /// Waits keep their deadlines. Other operations, and attempts that do not wait, are not postponed indefinitely.
    mutating func postpone(_ id: ID, _ now: Duration) {
        let claim = claims[id]
        guard claim != nil || calls[id] != nil else { return }
        backlog.append(id)
        if claim?.request.queues != true, claim?.timeout == nil { remind(id, at: now + settings.callTimeout) }
    }

    /// Numbers a request and attaches the confirmations that wait.
    mutating func send(_ operation: Operation, _ purpose: Session.Purpose) -> EngineRequest {
        let isHeartbeat = if case .heartbeat = operation { true } else { false }
        let request = EngineRequest(
            session: life.id, number: live.window.next(), settled: live.window.report(always: isHeartbeat),
            acknowledged: live.confirmations.take(Self.maxAcknowledged), operation: operation)
        live.pending[request.number] = Session.Pending(request: request, purpose: purpose)
        return request
    }

    mutating func forget(_ id: ID) {
        guard let number = claims.removeValue(forKey: id)?.number, isLive else { return }
        live.claimIDs[number] = nil
    }

    // MARK: Errors

    static var stopped: RedisDCError {
        RedisDCError(.stopped, "the coordinator has stopped; make a new one to go on")
    }

    private func notHeld(_ id: ID) -> RedisDCError { RedisDCError(.lost, "the lease is not held any more") }
}

/// How long a caller waits: the timeout it asked for, and when that is.
struct WaitLimit: Sendable {
    var timeout: Duration
    var deadline: Duration
}
