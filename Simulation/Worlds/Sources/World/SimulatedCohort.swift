// A mutex that a process keeps for its tasks: the real CohortStateMachine, and what `Cohort` does with its actions.
@testable import RedisDC

/// A mutex that a process keeps for its tasks.
final class SimulatedCohort {
    typealias Turn = CohortStateMachine.Turn
    typealias Begin = Result<(turn: Turn, life: SessionLife), RedisDCError>

    private let process: SimulatedProcess
    let resource: Resource
    private(set) var machine: CohortStateMachine
    private let recall = Recall()
    private var waiters: [UInt64: (Begin) -> Void] = [:]
    private var request: UInt64?
    /// The current turn that must be told of a loss.
    private var onLoss: (turn: UInt64, notify: () -> Void)?
    private var timerAt: Time?

    /// The way from the claims to the cohort.
    ///
    /// `@unchecked`: a world is used by one thread.
    private final class Recall: @unchecked Sendable {
        weak var cohort: SimulatedCohort?
    }

    init(_ name: String, of process: SimulatedProcess, limit: Int, linger: Duration) {
        self.process = process
        resource = Resource(name: name, kind: .mutex, permits: 1)
        let settings = CohortStateMachine.Settings(
            limit: limit, linger: linger, checkInterval: process.machine.settings.heartbeatInterval,
            purpose: "acquire \(resource)")
        let recall = recall
        machine = CohortStateMachine(settings: settings) { CohortClaim { recall.cohort?.recalled($0) } }
        recall.cohort = self
    }

    // MARK: Turns

    func lock(timeout: Duration?, isCancelledAfter: Time?, _ begin: @escaping (Begin) -> Void) {
        let isAttempt = timeout == .zero
        let limit = timeout.flatMap { isAttempt ? nil : WaitLimit(timeout: $0, deadline: process.now + $0) }
        let waiter: UInt64
        switch machine.lock(limit, isAttempt: isAttempt, now: process.now) {
        case .begin(let turn, let life): return begin(.success((turn, life)))
        case .fail: return begin(.failure(notAvailable))
        case .wait(let id): (waiter, waiters[id]) = (id, begin)
        case .request(let id, let claim):
            (waiter, waiters[id]) = (id, begin)
            request(claim, isAttempt: isAttempt)
        case .replace(let id, let claim, let releasing):
            (waiter, waiters[id]) = (id, begin)
            request(claim, isAttempt: isAttempt, releasing: releasing)
        }
        if let time = isCancelledAfter {
            process.world.after(time) { _ in
                self.process.run { _ in self.abandon(waiter, RedisDCError(.cancelled, "the task was cancelled")) }
            }
        }
        arm()
    }

    private var notAvailable: RedisDCError { .timedOut("acquire \(resource)", after: .zero) }

    private func finish(_ id: UInt64, _ result: Begin) {
        waiters.removeValue(forKey: id)?(result)
    }

    /// Whether a turn has the mutex, as far as the process knows.
    func isHeld(_ turn: Turn, _ life: SessionLife) -> Bool {
        guard case .held(let tenure) = machine.state, case .turn(turn.number) = tenure.use else { return false }
        return life.end > process.now
    }

    /// Whether the server has the lease that a turn uses.
    func isStored(_ turn: Turn) -> Bool {
        guard case .held(let tenure) = machine.state, case .turn(turn.number) = tenure.use else { return false }
        return process.isStored(tenure.id)
    }

    func notifyLoss(of turn: Turn, _ notify: @escaping () -> Void) { onLoss = (turn.number, notify) }

    /// Ends a turn.
    ///
    /// - Parameter done: gets whether the mutex was lost before.
    func release(_ turn: Turn, _ done: @escaping (Bool) -> Void) {
        if onLoss?.turn == turn.number { onLoss = nil }
        switch machine.release(turn.number, now: process.now) {
        case .none, .lost(request: nil): done(true)
        case .lost(let claim?):
            request(claim)
            done(true)
        case .linger: done(false)
        case .begin(let id, let turn, let life):
            done(false)
            finish(id, .success((turn, life)))
        case .release(let claim):
            process.release(claim) { result in done(result.error.map { $0.code == .lost || $0.mayHaveRun } ?? false) }
        case .replace(let claim, let releasing):
            request(claim, releasing: releasing)
            done(false)
        }
        arm()
    }

    private func abandon(_ id: UInt64, _ error: RedisDCError) {
        switch machine.abandon(id, error) {
        case .none: break
        case .fail(let id, let error): finish(id, .failure(error))
        case .cancelRequest: if let request { process.cancel(request) }
        }
    }

    // MARK: The claim

    private func request(_ claim: CohortClaim, isAttempt: Bool = false, releasing: UInt64? = nil) {
        if isAttempt, let releasing { process.releaseSoon(releasing) }
        let whole = Acquire(resource: resource, mode: .lease, detail: .cohort(claim))
        request = process.acquire(
            isAttempt ? whole.withoutQueueing : whole, timeout: nil, onLoss: { [weak self] _ in self?.lost(claim) }
        ) { result in self.answered(claim, result) }
        if !isAttempt, let releasing { process.releaseSoon(releasing) }
        if machine.isCancelled(claim), let request { process.cancel(request) }
    }

    private func answered(_ claim: CohortClaim, _ result: EngineStateMachine.Finish) {
        switch result {
        case .success(.granted(let grant)): perform(machine.granted(grant, claim, now: process.now))
        case .failure(let error): perform(machine.requestEnded(claim, error, isAttempt: false))
        case .success: perform(machine.requestEnded(claim, notAvailable, isAttempt: true))
        }
        arm()
    }

    private func perform(_ actions: [CohortStateMachine.RequestAction]) {
        for action in actions {
            switch action {
            case .begin(let id, let turn, let life): finish(id, .success((turn, life)))
            case .fail(let id, let error): finish(id, .failure(error))
            case .release(let claim): process.releaseSoon(claim)
            case .request(let claim, let releasing): request(claim, releasing: releasing)
            }
        }
    }

    private func lost(_ claim: CohortClaim) {
        let (isInUse, next) = machine.lost(claim)
        if isInUse { onLoss?.notify() }
        if let next { request(next) }
    }

    private func recalled(_ claim: CohortClaim) {
        if let unused = machine.recalled(claim) { process.releaseSoon(unused) }
    }

    // MARK: Time

    private func arm() {
        guard let next = machine.nextTick else { return }
        let at = min(next, process.now + process.machine.settings.heartbeatInterval).microsecondsRoundedUp
        if let timerAt, timerAt <= at { return }
        timerAt = at
        process.world.agenda.add(
            at: max(process.world.now, at), .timer(process),
            isNeeded: { self.timerAt == at && !self.process.isDead }
        ) { _ in
            guard self.timerAt == at else { return }
            self.timerAt = nil
            self.process.run { _ in self.tick() }
        }
    }

    private func tick() {
        for action in machine.tick(now: process.now) {
            switch action {
            case .abandon(let id, let error): abandon(id, error)
            case .release(let claim): process.releaseSoon(claim)
            case .check(let id, let claim): check(id, claim)
            }
        }
        arm()
    }

    private func check(_ id: UInt64, _ claim: CohortClaim) {
        process.use(id) {
            ExtendFences(held: $0, cohort: claim)
        } _: { result in
            let fences = result.answer.flatMap { ExtendFences.value(of: $0) }
            if fences?.isAwaited == true { claim.recall(.waiting) }
            self.machine.checked(claim, end: fences?.end, now: self.process.now)
            self.arm()
        }
    }
}
