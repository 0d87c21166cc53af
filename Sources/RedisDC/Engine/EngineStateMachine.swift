// The client's side of the engine as a pure state machine: no I/O, no clock, no continuations.
//
// It owns the session, the requests in flight, and the state of every claim. Each event returns the actions that follow
// from it, in an enum of its own that is declared above the event's method; `Engine` carries them out.
//
// A grant is accepted from a reply, or from a message on the session's wake-up channel. A lost message only delays the
// grant: the machine finds it when it compares its claims with Redis. A forged message is not detected.
//
// Here: the state, and the events that callers cause. +Claims: a claim and its states. +Session: how a session begins and
// ends. +Replies: replies of Redis and failed requests, whose effects are in +Answers and +Failures. +WakeUps: messages on
// the channel, and the comparison with Redis after a gap. +Time: deadlines and heartbeats. +Repair: the comparison with
// the server of a new connection, after a failover.
import CoordinationBase
import DequeModule
import HeapModule
import Hiredis

struct EngineStateMachine {
    typealias ID = UInt64
    typealias Finish = Result<Output, RedisDCError>

    struct Settings: Sendable {
        var ttl: Duration = .seconds(15) {
            didSet { (margin, heartbeatInterval) = (ttl / 10, ttl / 3) }
        }
        /// The maximum time for which a cancelled or timed-out wait waits for Redis to end its claim. After it the
        /// caller's operation fails, and the release continues in the background.
        var settleTimeout: Duration = .milliseconds(250)
        /// The maximum time for which an operation that does not queue may stay in the backlog.
        var callTimeout: Duration = .seconds(10)
        /// Consumed permits are confirmed by the next request in their slot, or after this time.
        var confirmationDelay: Duration = .milliseconds(5)
        /// The interval at which waiters are compared with Redis while the channel is not subscribed.
        var pollInterval: Duration = .seconds(1)
        var failsWaitersOnLoss = false
        /// How long, and how many bytes of, confirmed requests are remembered.
        var repairTime: Duration = .seconds(30)
        var repairBytes = 8 << 20

        // Stored, because dividing durations is slow.
        private(set) var margin: Duration = .seconds(15) / 10
        private(set) var heartbeatInterval: Duration = .seconds(15) / 3
    }

    /// The result of a granted request.
    struct Grant: Sendable {
        var claim: ID
        var fence: UInt64
        /// The generation and index of an arrival at a barrier: see ``EngineReply/granted(fence:arrival:)``. For the claim
        /// of a cohort a ``CohortClaim/Reservation``.
        var arrival: UInt64
        var life: SessionLife
        /// Notified when the lease is lost. `nil` when the permits were consumed.
        var watch: LeaseWatch?
    }

    /// The result of an operation that did not fail.
    enum Output: Sendable {
        case granted(Grant)
        /// The request may not queue, and there were not enough permits.
        case notAvailable(Acquire)
        /// Redis's reply, which the operation reads: ``EngineOperation/value(of:)``.
        case answered(EngineReply)

        /// The result of a release.
        static var released: Output { .answered(.done(count: 1, more: false)) }
    }

    /// The failure of a request.
    enum Failure: Error {
        /// The failure is transient: the same request is sent again.
        case retry(RedisError)
        case fatal(RedisDCError)
    }

    /// The maximum number of confirmations in one request. The script refuses more than 4,000 bytes of them.
    static let maxConfirmations = 100
    /// The number of requests in flight at which new claims and calls wait. Releases, confirmations, heartbeats,
    /// reconciliations and `recheck` may exceed it. More would not be faster, and a burst would take more memory.
    static let maxPending = 512

    // MARK: State

    enum Phase {
        case idle
        /// Subscribing to the wake-up channel, before joining, so that no wake-up is missed.
        case subscribing
        case joining(since: Duration, Channel)
        case live(Session)
        case stopped(UnreleasedState?)
    }

    /// The time at which ``tick(now:)`` handles an operation.
    struct Deadline: Comparable {
        var at: Duration
        var id: ID
        static func < (a: Deadline, b: Deadline) -> Bool { a.at < b.at }
    }

    let settings: Settings
    let makeSession: () -> SessionLife
    var phase = Phase.idle
    /// The live session, or the one being started.
    var life: SessionLife
    /// The epoch of the last session. A different one means that Redis has lost its data.
    var epoch: String?
    /// The highest fence that the process has seen. A session tells it to Redis, which may have forgotten it.
    var highestFence: UInt64 = 0
    var claims: [ID: Claim] = [:]
    var calls: [ID: Call] = [:]
    /// Claims and calls that wait for a session, or for fewer than `maxPending` requests in flight, oldest first.
    var backlog: Deque<ID> = []
    var deadlines = Heap<Deadline>()
    /// The latest confirmed requests of the session.
    var effects: ConfirmedEffects
    /// Those of the session before, until the next one has begun.
    var lostEffects = LostEffects()
    /// The number of operations that the machine itself has begun.
    var lastOwnID: ID = 0

    init(settings: Settings, makeSession: @escaping () -> SessionLife) {
        self.settings = settings
        self.makeSession = makeSession
        life = makeSession()
        effects = ConfirmedEffects(time: settings.repairTime, maxBytes: settings.repairBytes)
    }

    var isLive: Bool { if case .live = phase { true } else { false } }
    var isStopped: Bool { if case .stopped = phase { true } else { false } }
    /// The number of the present connection for commands, among those of the session.
    var connection: UInt64 { isLive ? live.notices.connection : 0 }

    /// The live session.
    ///
    /// - Precondition: the phase is `.live`.
    var live: Session {
        // The underscored accessors change it in place; `get` and `set` would copy its dictionaries.
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

    /// The action that a caller's operation leads to.
    enum CallAction {
        case none
        case send(EngineRequest)
        /// The caller's operation fails.
        case fail(RedisDCError)
        /// The session had expired. `failure` is the error of the caller's operation, if it fails too.
        case sessionEnded([SessionEndAction], failure: RedisDCError?)
    }

    /// Requests permits, or a place at a barrier, phaser, exchanger or latch.
    ///
    /// - Parameter limit: `nil` sets no limit.
    mutating func acquire(_ id: ID, _ request: Acquire, limit: WaitLimit?, now: Duration) -> CallAction {
        if isStopped { return .fail(Self.stopped) }
        claims[id] = Claim(request: request, limit: limit, family: request.family)
        if let limit { scheduleDeadline(id, at: limit.deadline) }
        return afterExpiry(now) { $0.begin(id, now).map { .send($0) } ?? .none }
    }

    /// Carries out an operation that is not a claim.
    mutating func call(_ id: ID, _ operation: any EngineOperation, now: Duration) -> CallAction {
        if isStopped { return .fail(Self.stopped) }
        return afterExpiry(now) { $0.beginCall(id, operation, now).map { .send($0) } ?? .none }
    }

    /// Releases a lease.
    ///
    /// - Parameter releaser: the operation that receives the outcome; `nil` when no caller waits for it.
    mutating func release(_ id: ID, releaser: ID?, now: Duration) -> CallAction {
        afterExpiry(now) { machine in
            guard machine.holds(id) else { return releaser == nil ? .none : .fail(machine.notHeld(id)) }
            return machine.beginRelease(id, releaser: releaser).map { .send($0) } ?? .none
        }
    }

    /// Carries out an operation on a lease, which fails with `.lost` when the lease is not held.
    mutating func use(
        _ id: ID, claim: ID, now: Duration, _ operation: (HeldClaim) -> any EngineOperation
    ) -> CallAction {
        afterExpiry(now) { machine in
            guard let held = machine.claims[claim], case .held(let number, let fence) = held.state else {
                return .fail(machine.notHeld(claim))
            }
            let operation = operation(HeldClaim(request: held.request, number: number))
            if case .claim(_, isEnded: true) = operation.once {
                machine.claims[claim]!.state = .releasing(number, fence: fence, nil)
            }
            return machine.beginCall(id, operation, slot: held.slot, now).map { .send($0) } ?? .none
        }
    }

    /// The action that a caller's cancellation or timeout leads to.
    enum AbandonAction {
        case none
        case send(EngineRequest)
        case fail(ID, RedisDCError)
    }

    /// Abandons a wait that was cancelled or has timed out.
    ///
    /// The caller receives `error` when Redis has ended the claim, so that nothing is held, or after `settleTimeout`.
    /// In the second case the release continues in the background. A party that turns out to have passed a barrier
    /// receives its grant instead.
    mutating func abandon(_ id: ID, _ error: RedisDCError, now: Duration) -> AbandonAction {
        guard let claim = claims[id] else { return .none }
        switch claim.state {
        case .idle:
            forget(id)
            return .fail(id, error)
        case .requested(let number), .queued(let number):
            if claim.request.mode == .consume, let slot = claim.slot {
                live.slots.refuse(slot, number, now, until: now + settings.repairTime)
            }
            claims[id]!.state = .abandoned(number, error)
            scheduleDeadline(id, at: now + settings.settleTimeout)
            let resource = claim.request.resource
            // A party must not leave a barrier once the others have passed it together with this party.
            let end: any EngineOperation =
                claim.request.action == .arrive ? Leave(target: resource, claim: number) : claim.release(number)
            let request = makeEnd(end, of: number, .end(id), slot: claim.slot)
            if claim.request.action == .arrive { live.leaving[request.number] = claim.request.name }
            return .send(request)
        case .abandoned, .held, .releasing: return .none
        }
    }

    /// Returns whether a lease is held and not being released.
    func holds(_ id: ID) -> Bool {
        if case .held? = claims[id]?.state { true } else { false }
    }

    // MARK: Beginning an operation

    /// Handles an event of a caller, after ending the session if it has expired: no request may be sent in it.
    private mutating func afterExpiry(
        _ now: Duration, _ event: (inout EngineStateMachine) -> CallAction
    ) -> CallAction {
        guard isExpired(at: now) else { return event(&self) }
        let end = endSession(.expired, now)
        if case .fail(let error) = event(&self) { return .sessionEnded(end, failure: error) }
        return .sessionEnded(end, failure: nil)
    }

    /// Returns the request of a claim or call, or postpones it and returns `nil` when there is no session or
    /// `maxPending` requests are in flight.
    ///
    /// - Parameter inNewSlot: whether the request of a claim must not use a slot again.
    mutating func begin(_ id: ID, inNewSlot: Bool = false, _ now: Duration) -> EngineRequest? {
        guard isLive, live.pending.count < Self.maxPending else {
            postpone(id, now)
            return nil
        }
        if let claim = claims[id] {
            if claim.request.action == .arrive, isLeaving(claim.request.name) {
                // It may be the same party: both would count.
                live.afterLeaving.append(id)
                return nil
            }
            let slot = inNewSlot ? live.slots.takeNew() : nil
            let request = makeRequest(claim.request, .claim(id), slot: slot)
            claims[id]!.state = .requested(request.number)
            claims[id]!.slot = request.slot
            live.claimIDs[request.number] = id
            return request
        }
        guard let call = calls[id] else { return nil }
        let request = makeRequest(call.operation, .call(id), slot: call.slot)
        calls[id]!.number = request.number
        return request
    }

    private mutating func beginCall(
        _ id: ID, _ operation: any EngineOperation, slot: Int? = nil, _ now: Duration
    ) -> EngineRequest? {
        calls[id] = Call(operation: operation, slot: slot)
        return begin(id, now)
    }

    /// Returns the request that releases a lease, or `nil` when the lease is not held. Also when it is the registration
    /// of a party whose arrival may still count: then the release follows the end of the arrival.
    mutating func beginRelease(_ id: ID, releaser: ID?) -> EngineRequest? {
        guard let claim = claims[id], case .held(let number, let fence) = claim.state else { return nil }
        claims[id]!.state = .releasing(number, fence: fence, releaser)
        if claim.request.action == .register, isLeaving(claim.request.name) {
            live.afterLeaving.append(id)
            return nil
        }
        return makeEnd(claim.release(number), of: number, .end(id), slot: claim.slot)
    }

    /// Returns the request that ends the claim of the request with this number. That one may still be under way: from now on
    /// it makes a claim that the process has given up.
    mutating func makeEnd(
        _ end: any EngineOperation, of number: UInt64, _ purpose: Session.Purpose = .background, slot: Int?
    ) -> EngineRequest {
        let request = makeRequest(end, purpose, slot: slot)
        if live.pending[number] != nil { live.pending[number]!.purpose = .givenUp(end: request.number) }
        return request
    }

    /// Appends a claim or call to the backlog, or puts one that was sent before at its beginning.
    ///
    /// A claim that may queue stays there until its own deadline. Any other operation fails after `callTimeout`.
    mutating func postpone(_ id: ID, _ now: Duration, isFirst: Bool = false) {
        let claim = claims[id]
        guard claim != nil || calls[id] != nil else { return }
        if isFirst { backlog.prepend(id) } else { backlog.append(id) }
        if claim?.request.mayQueue != true, claim?.limit == nil {
            scheduleDeadline(id, at: now + settings.callTimeout)
        }
    }

    /// Makes and records a request, and gives it a number, and a slot if it needs one.
    ///
    /// The caller must return it in an action, which sends it.
    ///
    /// - Parameter slot: the slot of the claim that the operation is about, or a new one.
    mutating func makeRequest(
        _ operation: any EngineOperation, _ purpose: Session.Purpose = .background, slot: Int? = nil
    ) -> EngineRequest {
        live.lastNumber += 1
        var request = EngineRequest(session: life.id, number: live.lastNumber, slot: slot, operation: operation)
        var confirms: UInt64?
        if operation.once == .slot, slot == nil { (request.slot, confirms) = live.slots.take() }
        live.pending[request.number] = Session.Pending(request: request, purpose: purpose, confirms: confirms)
        return request
    }

    /// Removes a claim. Its slot stays in use: it is freed when Redis has ended the claim.
    @discardableResult
    mutating func forget(_ id: ID) -> Claim? {
        let claim = claims.removeValue(forKey: id)
        if let number = claim?.number, isLive { live.claimIDs[number] = nil }
        return claim
    }

    /// Removes a claim that has ended in Redis, and frees its slot.
    mutating func forgetEnded(_ id: ID) {
        guard let claim = forget(id), let slot = claim.slot, let number = claim.number, isLive else { return }
        giveUp(number)
        free(slot, of: number)
    }

    /// Frees the slot of a claim, now or when the request that makes the claim is answered: until then it may be repeated, and
    /// may make the claim again on a new master. A later request in the slot would confirm what it has consumed there.
    mutating func free(_ slot: Int, of number: UInt64) {
        if live.pending[number] != nil { live.pending[number]!.freesSlot = true } else { live.slots.give(slot) }
    }

    // MARK: Errors

    static var stopped: RedisDCError {
        RedisDCError(.stopped, "the coordinator has stopped; create a new Coordinator")
    }

    func notHeld(_ id: ID) -> RedisDCError {
        let name = claims[id].map { "\($0.request.resource)" } ?? "the lease"
        return RedisDCError(.lost, "\(name) is no longer held")
    }
}

/// The timeout that a caller asked for, and the deadline that follows from it.
///
/// A class, so that a waiter needs memory for it only when it has a limit.
final class WaitLimit: Sendable {
    let timeout: Duration
    let deadline: Duration

    init(timeout: Duration, deadline: Duration) { (self.timeout, self.deadline) = (timeout, deadline) }
}
