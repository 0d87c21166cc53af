// Which task of this process has a mutex, and when the mutex goes back to Redis: no I/O, no clock, no continuations.
//
// The tasks wait in a queue of their own. One claim in Redis, `Tenure`, stands for all of them. While it is held, a
// release hands the mutex over to the first task of the queue: without limit while no other process waits, else a
// limited number of times. Then the claim is released, and requested again behind those that wait. When the queue is
// empty the claim lingers, so that the next task needs no request.
//
// Each event returns the actions that follow from it; `Cohort` carries them out.
import DequeModule
import HeapModule

struct CohortStateMachine {
    typealias ID = UInt64

    /// The number of fences that a claim reserves at a time, beginning with that of its grant. Same as FENCES of
    /// records.lua.
    static let fences: UInt64 = 1 << 20

    struct Settings: Sendable {
        /// The number of grants in a row while others wait.
        var limit: Int
        /// How long an unused claim is kept.
        var linger: Duration
        /// The interval at which a held claim is compared with Redis, in case a recall was lost.
        var checkInterval: Duration
        /// The same while turns begin and end: nothing else tells whether Redis still has the claim.
        var checkIntervalInUse = Duration.milliseconds(250)
        /// The operation in the error messages of the tasks, such as `acquire mutex "orders"`.
        var purpose: String
    }

    /// One task's turn.
    struct Turn: Sendable, Equatable {
        var number: UInt64
        var fence: UInt64
    }

    /// The time for which this process holds the mutex.
    struct Tenure {
        enum Use {
            /// The number of the turn.
            case turn(UInt64)
            case lingering(since: Duration)
        }
        enum Check {
            case due(at: Duration)
            case inFlight
        }
        let claim: CohortClaim
        /// The engine's id of the claim.
        let id: ID
        let life: SessionLife
        var use: Use
        var endOfFences: UInt64
        var demand: CohortClaim.Demand
        /// The number of turns since the demand is what it is.
        var turns = 0
        var check: Check
        /// When the claim was granted, or last compared with Redis.
        var comparedAt: Duration

        /// Whether a turn may begin.
        func allowsTurn(_ settings: Settings, _ now: Duration) -> Bool {
            (demand == .none || turns < settings.limit) && claim.lastFence < endOfFences && now < life.end
        }
    }

    enum State {
        case none
        /// A claim is requested, unless everybody has left: then the request is being cancelled. `isAttempt`: the request
        /// may not queue.
        case requesting(CohortClaim, isAttempt: Bool, isCancelled: Bool)
        case held(Tenure)
    }

    struct Waiter {
        var limit: WaitLimit?
        /// It does not wait for others: if the mutex is not free, it fails.
        var isAttempt: Bool
    }

    struct Deadline: Comparable {
        var at: Duration
        var id: ID
        static func < (a: Deadline, b: Deadline) -> Bool { a.at < b.at }
    }

    let settings: Settings
    let makeClaim: @Sendable () -> CohortClaim
    private(set) var state = State.none
    private var lastTurn: UInt64 = 0
    private var lastWaiter: ID = 0
    private var waiters: [ID: Waiter] = [:]
    /// The order of the waiters. Those that have left are still in it.
    private var queue: Deque<ID> = []
    private var deadlines = Heap<Deadline>()
    /// Waiters that have left, and receive their error when the request has been cancelled: then nothing is held.
    private var leaving: [(ID, RedisDCError)] = []

    init(settings: Settings, makeClaim: @escaping @Sendable () -> CohortClaim) {
        (self.settings, self.makeClaim) = (settings, makeClaim)
    }

    /// The number of tasks that wait for their turn.
    var waiterCount: Int { waiters.count }

    // MARK: Lock

    enum LockAction {
        case begin(Turn, SessionLife)
        /// The task waits in the queue.
        case wait(ID)
        /// The task waits in the queue, and the claim must be requested.
        case request(ID, CohortClaim)
        /// As `request`. Then the other claim is released.
        case replace(ID, CohortClaim, releasing: ID)
        /// A task of this process has the mutex or waits for it, and this one may not wait.
        case fail
    }

    /// Handles a task that asks for the mutex.
    ///
    /// - Parameters:
    ///   - limit: `nil` waits without limit.
    ///   - isAttempt: the task does not wait for others. A claim that is requested for it may not queue.
    mutating func lock(_ limit: WaitLimit?, isAttempt: Bool = false, now: Duration) -> LockAction {
        switch state {
        case .held(let tenure):
            guard case .lingering = tenure.use else { return isAttempt ? .fail : .wait(enqueue(limit)) }
            if let turn = beginTurn(now) { return .begin(turn, tenure.life) }
            return .replace(enqueue(limit, isAttempt), beginRequest(isAttempt: isAttempt), releasing: tenure.id)
        case .requesting(_, isAttempt: true, isCancelled: false): return .wait(enqueue(limit, isAttempt))
        case .requesting: return isAttempt ? .fail : .wait(enqueue(limit))
        case .none: return .request(enqueue(limit, isAttempt), beginRequest(isAttempt: isAttempt))
        }
    }

    private mutating func beginRequest(isAttempt: Bool = false) -> CohortClaim {
        let claim = makeClaim()
        state = .requesting(claim, isAttempt: isAttempt, isCancelled: false)
        return claim
    }

    private mutating func enqueue(_ limit: WaitLimit?, _ isAttempt: Bool = false) -> ID {
        lastWaiter += 1
        waiters[lastWaiter] = Waiter(limit: limit, isAttempt: isAttempt)
        // Waiters that have left are purged when they are more than half.
        if queue.count > 64, queue.count > 2 * waiters.count { queue.removeAll { waiters[$0] == nil } }
        queue.append(lastWaiter)
        if let limit {
            if deadlines.count > 64, deadlines.count > 2 * waiters.count {
                deadlines = Heap(deadlines.unordered.filter { waiters[$0.id] != nil })
            }
            deadlines.insert(Deadline(at: limit.deadline, id: lastWaiter))
        }
        return lastWaiter
    }

    /// Removes the first waiter.
    private mutating func dequeue() -> ID? {
        while let id = queue.popFirst() {
            if waiters.removeValue(forKey: id) != nil { return id }
        }
        return nil
    }

    /// Begins a turn if the tenure allows it.
    private mutating func beginTurn(_ now: Duration) -> Turn? {
        guard case .held(var tenure) = state, tenure.allowsTurn(settings, now) else { return nil }
        lastTurn += 1
        let turn = Turn(number: lastTurn, fence: tenure.claim.lastFence + 1)
        tenure.claim.lastFence = turn.fence
        tenure.turns += 1
        tenure.use = .turn(turn.number)
        if case .due(let at) = tenure.check {
            let isShort = tenure.endOfFences - turn.fence < Self.fences / 2
            tenure.check = .due(at: min(at, isShort ? now : max(now, tenure.comparedAt + settings.checkIntervalInUse)))
        }
        state = .held(tenure)
        return turn
    }

    // MARK: Requests

    /// Whether this claim is being requested.
    func isRequesting(_ claim: CohortClaim) -> Bool {
        if case .requesting(let requested, _, _) = state { requested === claim } else { false }
    }

    /// Whether the request of this claim is to be cancelled.
    func isCancelled(_ claim: CohortClaim) -> Bool {
        if case .requesting(let requested, _, true) = state { requested === claim } else { false }
    }

    enum RequestAction {
        case begin(ID, Turn, SessionLife)
        case fail(ID, RedisDCError)
        case release(ID)
        /// Requests a claim, and then releases the other one.
        case request(CohortClaim, releasing: ID? = nil)
    }

    /// Handles the grant of the requested claim.
    mutating func granted(_ grant: EngineStateMachine.Grant, _ claim: CohortClaim, now: Duration) -> [RequestAction] {
        guard isRequesting(claim) else { return [.release(grant.claim)] }
        let reservation = CohortClaim.Reservation(rawValue: grant.arrival) ?? .unknown
        let demand: CohortClaim.Demand =
            switch reservation {
            case .unknown: .unknown
            case .unawaited: .none
            case .awaited: .waiting
            }
        claim.lastFence = grant.fence - 1
        state = .held(
            Tenure(
                claim: claim, id: grant.claim, life: grant.life, use: .lingering(since: now),
                endOfFences: reservation == .unknown ? grant.fence : grant.fence + Self.fences - 1,
                demand: max(demand, claim.demand), check: .due(at: now + settings.checkInterval), comparedAt: now))
        return settleLeaving() + next(now) + failAttempts(.timedOut(settings.purpose, after: .zero))
    }

    /// Ends the attempts that wait, because the mutex is not free.
    private mutating func failAttempts(_ error: RedisDCError) -> [RequestAction] {
        let attempts = waiters.filter(\.value.isAttempt).keys.sorted()
        for id in attempts { waiters[id] = nil }
        return attempts.map { .fail($0, error) }
    }

    /// Handles a request that failed or was cancelled.
    ///
    /// - Parameters:
    ///   - error: the error of the waiters.
    ///   - isAttempt: the request could not queue, and the mutex was not free. Who may wait for it requests again.
    mutating func requestEnded(_ claim: CohortClaim, _ error: RedisDCError, isAttempt: Bool) -> [RequestAction] {
        guard case .requesting(let requested, _, let isCancelled) = state, requested === claim else { return [] }
        state = .none
        var actions = settleLeaving()
        if isAttempt {
            actions += failAttempts(error)
        } else if !isCancelled {
            while let id = dequeue() { actions.append(.fail(id, error)) }
        }
        // Those who came in the meantime.
        if !waiters.isEmpty { actions.append(.request(beginRequest())) }
        return actions
    }

    private mutating func settleLeaving() -> [RequestAction] {
        defer { leaving = [] }
        return leaving.map { .fail($0, $1) }
    }

    /// Begins the turn of the first waiter, or decides what happens to an unused claim.
    private mutating func next(_ now: Duration) -> [RequestAction] {
        guard case .held(let tenure) = state else { return [] }
        if !waiters.isEmpty, let turn = beginTurn(now), let id = dequeue() { return [.begin(id, turn, tenure.life)] }
        state = .none
        return waiters.isEmpty ? [.release(tenure.id)] : [.request(beginRequest(), releasing: tenure.id)]
    }

    // MARK: Release

    enum ReleaseAction {
        /// The turn has ended before.
        case none
        /// The mutex stays with this process for a while.
        case linger
        case begin(ID, Turn, SessionLife)
        case release(ID)
        /// Requests another claim, behind those who wait, and then releases this one.
        case replace(CohortClaim, releasing: ID)
        /// The session had expired when the turn ended, so the turn is lost. Another claim must be requested for the
        /// waiters, if there are any.
        case lost(request: CohortClaim?)
    }

    /// Handles the end of a turn.
    mutating func release(_ turn: UInt64, now: Duration) -> ReleaseAction {
        guard case .held(var tenure) = state, case .turn(turn) = tenure.use else { return .none }
        // The engine ends the session, and all its claims, at its next event.
        if now >= tenure.life.end { return .lost(request: endTenure()) }
        if waiters.isEmpty {
            if tenure.demand != .waiting, settings.linger > .zero {
                tenure.use = .lingering(since: now)
                state = .held(tenure)
                return .linger
            }
            state = .none
            return .release(tenure.id)
        }
        if let turn = beginTurn(now), let id = dequeue() { return .begin(id, turn, tenure.life) }
        return .replace(beginRequest(), releasing: tenure.id)
    }

    enum DetachAction {
        /// The turn has ended before.
        case none
        /// The task releases this claim by itself. Another one must be requested for the waiters, if there are any.
        case detached(ID, request: CohortClaim?)
    }

    /// The claim with which a turn holds the mutex; `nil` if the turn has ended.
    func claim(of turn: UInt64) -> ID? {
        if case .held(let tenure) = state, case .turn(turn) = tenure.use { tenure.id } else { nil }
    }

    /// Removes the claim of a turn from the cohort.
    mutating func detach(_ turn: UInt64) -> DetachAction {
        guard case .held(let tenure) = state, case .turn(turn) = tenure.use else { return .none }
        return .detached(tenure.id, request: endTenure())
    }

    private mutating func endTenure() -> CohortClaim? {
        state = .none
        return waiters.isEmpty ? nil : beginRequest()
    }

    // MARK: Leaving

    enum AbandonAction {
        case none
        case fail(ID, RedisDCError)
        /// The waiter fails when the request has been cancelled.
        case cancelRequest
    }

    /// Handles a waiter that was cancelled or has timed out.
    mutating func abandon(_ id: ID, _ error: RedisDCError) -> AbandonAction {
        guard waiters.removeValue(forKey: id) != nil else { return .none }
        guard waiters.isEmpty, case .requesting(let claim, let isAttempt, let isCancelled) = state else {
            return .fail(id, error)
        }
        leaving.append((id, error))
        if isCancelled { return .none }
        state = .requesting(claim, isAttempt: isAttempt, isCancelled: true)
        return .cancelRequest
    }

    // MARK: Recall and loss

    /// Handles the report that others wait, or may wait.
    ///
    /// - Returns: the claim to release now.
    mutating func recalled(_ claim: CohortClaim) -> ID? {
        guard case .held(var tenure) = state, tenure.claim === claim, tenure.demand < claim.demand else { return nil }
        tenure.demand = claim.demand
        tenure.turns = 0
        state = .held(tenure)
        guard tenure.demand == .waiting, case .lingering = tenure.use else { return nil }
        state = .none
        return tenure.id
    }

    /// Handles the loss of the claim.
    ///
    /// - Returns: whether a turn has lost it, and the claim that must be requested for the waiters, if there are any.
    mutating func lost(_ claim: CohortClaim) -> (isInUse: Bool, request: CohortClaim?) {
        guard case .held(let tenure) = state, tenure.claim === claim else { return (false, nil) }
        if case .turn = tenure.use { return (true, endTenure()) }
        return (false, endTenure())
    }

    // MARK: Time

    enum TickAction {
        /// Reserves more fences and asks whether others wait.
        case check(ID, CohortClaim)
        case release(ID)
        case abandon(ID, RedisDCError)
    }

    /// The time at which ``tick(now:)`` must be called next; `nil` when there is none.
    var nextTick: Duration? {
        var next = deadlines.min?.at
        guard case .held(let tenure) = state else { return next }
        if case .due(let at) = tenure.check { next = min(next ?? at, at) }
        if case .lingering(let since) = tenure.use {
            let end = since + settings.linger
            next = min(next ?? end, end)
        }
        return next
    }

    /// Handles the passing of time.
    mutating func tick(now: Duration) -> [TickAction] {
        var actions: [TickAction] = []
        while let first = deadlines.min, first.at <= now {
            deadlines.removeMin()
            if let limit = waiters[first.id]?.limit {
                actions.append(.abandon(first.id, .timedOut(settings.purpose, after: limit.timeout)))
            }
        }
        guard case .held(var tenure) = state else { return actions }
        if case .lingering(let since) = tenure.use, since + settings.linger <= now {
            state = .none
            actions.append(.release(tenure.id))
            return actions
        }
        if case .due(let at) = tenure.check, at <= now {
            tenure.check = .inFlight
            state = .held(tenure)
            actions.append(.check(tenure.id, tenure.claim))
        }
        return actions
    }

    /// Handles the result of a check; `nil` when it failed. Without more fences the tenure ends with the last one.
    mutating func checked(_ claim: CohortClaim, end: UInt64?, now: Duration) {
        guard case .held(var tenure) = state, tenure.claim === claim else { return }
        tenure.check = .due(at: now + settings.checkInterval)
        tenure.comparedAt = now
        if let end { tenure.endOfFences = max(tenure.endOfFences, end) }
        state = .held(tenure)
    }
}
