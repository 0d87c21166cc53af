// Runs a CohortStateMachine for the tasks of this process: wakes those whose turn it is, requests and releases the claim.
import CoordinationBase
import Hiredis

/// The tasks of this process that share one mutex: see ``Locality/cohort(limit:linger:)``.
///
/// Any thread enters it under its lock. With the mutex at hand, nothing else is needed: no change of executor, and no
/// request. The engine is asked only for the claim.
final class Cohort: Sendable {
    private typealias Finish = Result<Lease, RedisDCError>

    private struct State {
        var machine: CohortStateMachine
        /// The continuations of the waiters, and the outcomes of those who have none yet.
        var continuations: [UInt64: UnsafeContinuation<Finish, Never>] = [:]
        var outcomes: [UInt64: Finish] = [:]
        /// The lease of the current turn is notified of its loss here.
        var turnWatch: LeaseWatch?
        /// The engine reports the loss of the claim here.
        var claimWatch: LeaseWatch?
        var request: Task<Void, Never>?
        var timerAt: Duration?
    }

    let engine: Engine
    let resource: Resource
    private let state: Locked<State>

    init(resource: Resource, engine: Engine, limit: Int, linger: Duration) {
        (self.resource, self.engine) = (resource, engine)
        let recall = Recall()
        let machine = CohortStateMachine(
            settings: CohortStateMachine.Settings(
                limit: limit, linger: linger, checkInterval: engine.settings.heartbeatInterval,
                purpose: "acquire \(resource)")
        ) { CohortClaim { claim in recall.cohort.withLock { $0.object }?.recalled(claim) } }
        state = Locked(State(machine: machine))
        recall.cohort.withLock { $0.object = self }
    }

    /// The way from the claims, which the engine keeps, to the cohort.
    private final class Recall: Sendable {
        struct Reference: Sendable { weak var object: Cohort? }
        let cohort = Locked(Reference())
    }

    // MARK: Lock

    /// Waits until it is the task's turn.
    ///
    /// - Parameter timeout: `nil` sets no limit; 0 does not wait.
    /// - Throws: what ``DistributedMutex/lock(timeout:)`` throws.
    func lock(timeout: Duration?) async throws(RedisDCError) -> Lease {
        if engine.instruments.isDisabled { return try await waitForTurn(timeout) }
        return try await engine.instruments.waiting { () async throws(RedisDCError) in
            try await waitForTurn(timeout)
        } isGranted: { _ in
            true
        }
    }

    private func waitForTurn(_ timeout: Duration?) async throws(RedisDCError) -> Lease {
        if Task.isCancelled { throw Engine.cancellation }
        let limit = try engine.waitLimit(timeout)
        let isAttempt = timeout == .zero
        let now = engine.now
        let (action, watch) = state.withLock { state -> (CohortStateMachine.LockAction, LeaseWatch?) in
            let action = state.machine.lock(limit, isAttempt: isAttempt, now: now)
            if case .begin = action { state.turnWatch = LeaseWatch() }
            return (action, state.turnWatch)
        }
        let id: UInt64
        switch action {
        case .begin(let turn, let life):
            let lease = Lease(turn, of: self, life: life, watch: watch!)
            // A task that always finds the mutex at hand must not keep the client's executor from the sockets: the session
            // would end.
            if turn.number % 64 == 0, engine.redis.isCurrent { await Task.yield() }
            return lease
        case .fail: throw notAvailable
        case .wait(let waiter): id = waiter
        case .request(let waiter, let claim):
            id = waiter
            request(claim, isAttempt: isAttempt)
        case .replace(let waiter, let claim, let releasing):
            id = waiter
            request(claim, isAttempt: isAttempt, releasing: releasing)
        }
        if limit != nil { arm() }
        return try await outcome(of: id).get()
    }

    private func outcome(of id: UInt64) async -> Finish {
        await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let outcome = state.withLock { state in
                    if let outcome = state.outcomes.removeValue(forKey: id) { return outcome as Finish? }
                    state.continuations[id] = continuation
                    return nil
                }
                if let outcome { continuation.resume(returning: outcome) }
            }
        } onCancel: {
            abandon(id, Engine.cancellation)
        }
    }

    private func finish(_ id: UInt64, _ outcome: Finish) {
        let continuation = state.withLock { state -> UnsafeContinuation<Finish, Never>? in
            if let continuation = state.continuations.removeValue(forKey: id) { return continuation }
            state.outcomes[id] = outcome
            return nil
        }
        continuation?.resume(returning: outcome)
    }

    private func abandon(_ id: UInt64, _ error: RedisDCError) {
        let (action, request) = state.withLock { ($0.machine.abandon(id, error), $0.request) }
        switch action {
        case .none: break
        case .fail(let id, let error): finish(id, .failure(error))
        case .cancelRequest: request?.cancel()
        }
    }

    /// For tests: the number of tasks that wait for their turn.
    var waiterCount: Int { state.withLock { $0.machine.waiterCount } }

    private var lostTurn: RedisDCError {
        RedisDCError(.lost, "\(resource) is no longer held: it was lost before the lease was released")
    }

    private var notAvailable: RedisDCError { .timedOut("acquire \(resource)", after: .zero) }

    // MARK: Release

    /// Ends a turn: hands the mutex over, keeps it for a while, or releases the claim.
    ///
    /// - Throws: what ``Lease/release()`` throws.
    func release(_ turn: UInt64) async throws(RedisDCError) {
        if let claim = try endTurn(turn) { try await engine.release(claim) }
    }

    /// Ends a turn without waiting for the outcome.
    func releaseSoon(_ turn: UInt64) {
        if let claim = try? endTurn(turn) { engine.releaseSoon(claim) }
    }

    /// - Returns: the claim to release.
    /// - Throws: `.lost` when the claim was lost, or the session had expired, before the turn ended.
    private func endTurn(_ turn: UInt64) throws(RedisDCError) -> UInt64? {
        let now = engine.now
        let (action, watch, pause) = state.withLock {
            state -> (CohortStateMachine.ReleaseAction, LeaseWatch?, Duration?) in
            let action = state.machine.release(turn, now: now)
            switch action {
            case .none: break
            case .begin: state.turnWatch = LeaseWatch()
            case .linger, .release, .replace, .lost: state.turnWatch = nil
            }
            return (action, state.turnWatch, pauseUntilTick(&state, now))
        }
        if let pause { tick(after: pause) }
        switch action {
        case .linger: return nil
        case .none, .lost(request: nil): throw lostTurn
        case .lost(let claim?):
            request(claim)
            throw lostTurn
        case .begin(let id, let turn, let life):
            finish(id, .success(Lease(turn, of: self, life: life, watch: watch!)))
            return nil
        case .release(let claim): return claim
        case .replace(let claim, let releasing):
            request(claim, releasing: releasing)
            return nil
        }
    }

    /// The claim with which a turn holds the mutex; `nil` if the turn has ended.
    func claim(of turn: UInt64) -> UInt64? { state.withLock { $0.machine.claim(of: turn) } }

    /// Takes the claim of a turn out of the cohort: its lease releases it by itself from now on.
    ///
    /// - Parameter watch: the lease's watch, which is notified when the claim is lost.
    /// - Returns: the claim; `nil` if the turn has ended.
    func detach(_ turn: UInt64, _ watch: LeaseWatch) -> UInt64? {
        let (action, claimWatch) = state.withLock { state in
            let action = state.machine.detach(turn)
            if case .detached = action { state.turnWatch = nil }
            return (action, state.claimWatch)
        }
        guard case .detached(let claim, let next) = action else { return nil }
        claimWatch?.onLoss { watch.lose($0) }
        if let next { request(next) }
        return claim
    }

    // MARK: The claim

    /// Requests a claim.
    ///
    /// - Parameter releasing: the claim that this one replaces. It is released when the request is on its way, so that it
    ///   is in the queue when the next process gets the mutex, which then knows that others wait.
    private func request(_ claim: CohortClaim, isAttempt: Bool = false, releasing: UInt64? = nil) {
        var releasing = releasing
        if isAttempt, let claim = releasing {
            // An attempt would find the mutex held.
            engine.releaseSoon(claim)
            releasing = nil
        }
        // Detached: the request serves all tasks, and not only the one that happens to begin it.
        let task = Task.detached { [self, releasing] in
            await carryOutRequest(claim, isAttempt: isAttempt, releasing: releasing)
        }
        let isCancelled = state.withLock { state in
            if state.machine.isRequesting(claim) { state.request = task }
            return state.machine.isCancelled(claim)
        }
        if isCancelled { task.cancel() }
    }

    private func carryOutRequest(_ claim: CohortClaim, isAttempt: Bool, releasing: UInt64?) async {
        let request = Acquire(resource: resource, mode: .lease, detail: .cohort(claim))
        do throws(RedisDCError) {
            let call = try engine.pending(request, timeout: isAttempt ? .zero : nil)
            await engine.carryOut(call) { if let releasing { engine.releaseSoon(releasing) } }
            if let grant = try call.grant() {
                granted(grant, claim)
            } else {
                requestEnded(claim, notAvailable, isAttempt: true)
            }
        } catch {
            requestEnded(claim, error, isAttempt: false)
        }
    }

    private func granted(_ grant: EngineStateMachine.Grant, _ claim: CohortClaim) {
        let now = engine.now
        perform { state in
            state.claimWatch = grant.watch
            return state.machine.granted(grant, claim, now: now)
        }
        grant.watch?.onLoss { [weak self] error in self?.lost(claim, error) }
        arm()
    }

    private func requestEnded(_ claim: CohortClaim, _ error: RedisDCError, isAttempt: Bool) {
        perform { $0.machine.requestEnded(claim, error, isAttempt: isAttempt) }
    }

    private func perform(_ event: (inout State) -> [CohortStateMachine.RequestAction]) {
        let (actions, watch) = state.withLock { state in
            let actions = event(&state)
            for action in actions { if case .begin = action { state.turnWatch = LeaseWatch() } }
            return (actions, state.turnWatch)
        }
        for action in actions {
            switch action {
            case .begin(let id, let turn, let life):
                finish(id, .success(Lease(turn, of: self, life: life, watch: watch!)))
            case .fail(let id, let error): finish(id, .failure(error))
            case .release(let claim): engine.releaseSoon(claim)
            case .request(let claim, let releasing): request(claim, releasing: releasing)
            }
        }
    }

    private func lost(_ claim: CohortClaim, _ error: RedisDCError) {
        let (watch, next) = state.withLock { state -> (LeaseWatch?, CohortClaim?) in
            let (isInUse, next) = state.machine.lost(claim)
            defer { if isInUse { state.turnWatch = nil } }
            return (isInUse ? state.turnWatch : nil, next)
        }
        watch?.lose(error)
        if let next { request(next) }
    }

    private func recalled(_ claim: CohortClaim) {
        if let unused = state.withLock({ $0.machine.recalled(claim) }) { engine.releaseSoon(unused) }
    }

    // MARK: Time

    /// Sets the timer for the machine's next tick. It keeps the cohort alive while that has something to do.
    private func arm() {
        let now = engine.now
        if let pause = state.withLock({ pauseUntilTick(&$0, now) }) { tick(after: pause) }
    }

    /// Returns the time after which a tick is needed; `nil` when there is nothing to do, or a timer is set that is early
    /// enough.
    private func pauseUntilTick(_ state: inout State, _ now: Duration) -> Duration? {
        guard let next = state.machine.nextTick else { return nil }
        // Deadlines of waiters that have left must not keep the cohort for long.
        let at = min(next, now + engine.settings.heartbeatInterval)
        if let timerAt = state.timerAt, timerAt <= at { return nil }
        state.timerAt = at
        return max(.zero, at - now)
    }

    private func tick(after pause: Duration) {
        Task.detached { [self] in
            try? await engine.clock.sleep(pause)
            tick()
        }
    }

    private func tick() {
        let now = engine.now
        let actions = state.withLock { state in
            state.timerAt = nil
            return state.machine.tick(now: now)
        }
        for action in actions {
            switch action {
            case .abandon(let id, let error): abandon(id, error.explained(by: engine.unreachable))
            case .release(let claim): engine.releaseSoon(claim)
            case .check(let id, let claim): Task.detached { [self] in await check(id, claim) }
            }
        }
        arm()
    }

    private func check(_ id: UInt64, _ claim: CohortClaim) async {
        let fences = try? await engine.use(id) { ExtendFences(held: $0, cohort: claim) }
        if fences?.isAwaited == true { claim.recall(.waiting) }
        let now = engine.now
        state.withLock { $0.machine.checked(claim, end: fences?.end, now: now) }
        arm()
    }
}

/// The cohorts of a coordinator, one for each mutex and ``Locality``.
final class Cohorts: Sendable {
    private struct Key: Hashable {
        var name: ByteName
        var locality: Locality
    }
    private struct Entry { weak var cohort: Cohort? }
    private let entries = Locked<[Key: Entry]>([:])

    /// Returns the cohort of a mutex; `nil` for a strict one.
    func cohort(of resource: Resource, _ locality: Locality, _ engine: Engine) -> Cohort? {
        guard case .cohort(let limit, let linger) = locality else { return nil }
        return entries.withLock { entries in
            let key = Key(name: ByteName(resource.name), locality: locality)
            if let cohort = entries[key]?.cohort { return cohort }
            // Entries of cohorts that are gone are purged when they may be half of all.
            if entries.count >= 64, entries.count.nonzeroBitCount == 1 {
                entries = entries.filter { $0.value.cohort != nil }
            }
            let cohort = Cohort(resource: resource, engine: engine, limit: limit, linger: linger)
            entries[key] = Entry(cohort: cohort)
            return cohort
        }
    }
}
