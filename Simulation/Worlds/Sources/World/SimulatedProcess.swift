// A process: the engine's real state machine, and what `Engine` does with its actions.
import SimulatedRedis

@testable import CoordinationBase
@testable import Hiredis
@testable import RedisDC

/// A process of a world.
final class SimulatedProcess {
    typealias Machine = EngineStateMachine

    let number: Int
    unowned let world: World
    private(set) lazy var link = Link(of: self, in: world)
    var machine: Machine
    private(set) var isDead = false
    /// Whether it releases what it has, and ends.
    var isLeaving = false
    /// Whether it has not repaired yet what a new server may have lost.
    var mustRepair = false
    /// How often its session has ended.
    private(set) var sessionEnds = 0
    /// The mutexes that it keeps for its tasks, by name.
    var cohorts: [String: SimulatedCohort] = [:]
    /// The part that uses mailboxes.
    var mail: MailProcess?
    /// The number of tasks that have not ended.
    var tasks = 0
    /// The client of the server by which wake-ups arrive.
    var channel: ClientID?
    private let clock = ProcessClock()
    /// Until when the process is stopped; it carries out nothing meanwhile.
    private(set) var stoppedUntil: Time = 0
    /// The last time at which it was stopped.
    private(set) var lastStopped: Time = -1
    var startedAt: Time
    /// Until when the process cannot reach the server.
    var unreachableUntil: Time = 0
    private var postponed: [(SimulatedProcess) -> Void] = []
    private var lastCall: UInt64 = 0
    private var callers: [UInt64: (Machine.Finish) -> Void] = [:]
    private var losses: [UInt64: (RedisDCError) -> Void] = [:]
    private var timerAt: Time?
    /// The permits that were consumed lately, and when. Redis may not know of their arrival, and returns them if the session
    /// ends.
    private var consumed: [(name: String, at: Time)] = []
    /// The numbers of claims whose release has lost its reply.
    private var doubtfulReleases: Set<UInt64> = []
    /// The subscription's number: what belongs to an earlier one is ignored.
    var subscription = 0
    var lastWakeUp: Time = 0

    init(number: Int, in world: World, ttl: Duration) {
        self.number = number
        self.world = world
        startedAt = world.now
        let clock = clock
        nonisolated(unsafe) var sessions = 0
        var settings = Machine.Settings()
        settings.ttl = ttl
        machine = Machine(settings: settings) {
            sessions += 1
            return SessionLife(id: "p\(number)s\(sessions)", now: { clock.now })
        }
    }

    func start() { link.connect() }

    /// The time of the process's clock, which its machine sees.
    var now: Duration { .microseconds(world.now) }

    /// Carries something out in the process: now, or when it goes on after a stop. Nothing once it is dead.
    func run(_ body: @escaping (SimulatedProcess) -> Void) {
        if isDead { return }
        if world.now < stoppedUntil { return postponed.append(body) }
        clock.now = now
        body(self)
        world.executor.drain()
        arm()
    }

    // MARK: Faults

    func die() {
        isDead = true
        ends()
        world.record { $0.add("killed", self) }
        doubtConsumed()
        unsubscribe()
        mail?.client.channels.end()
        link.breakOff()
        world.note("\(name) dies")
    }

    /// It does nothing more: what it has not repaired is lost.
    func ends() {
        world.lastEnd = world.servers.offset.master
        if mustRepair { world.judge { $0.lossIsFinal() } }
    }

    func stop(for time: Time) {
        (stoppedUntil, lastStopped) = (max(stoppedUntil, world.now + time), world.now)
        world.disturb(until: stoppedUntil)
        world.note("\(name) stops for \(Double(time) / 1_000_000) s")
        world.after(time) { world in if world.now >= self.stoppedUntil { self.resume() } }
    }

    func resume() {
        (stoppedUntil, lastStopped) = (0, world.now)
        mail?.isTroubled()
        let bodies = postponed
        postponed = []
        for body in bodies { run(body) }
    }

    var name: String { "process \(number)" }

    /// Whether it is alive and not stopped.
    var isRunning: Bool { !isDead && world.now >= stoppedUntil }

    /// How long its session lives without a heartbeat.
    var ttl: Time { machine.settings.ttl.microseconds }

    /// The waits of its tasks, in words.
    var waits: [String] {
        if isDead { return [] }
        return machine.claims.values.map { "\(name): \($0.request.purpose) in state \($0.state)" }
            + (tasks > 0 ? ["\(name) has \(tasks) tasks, \(machine.phase)"] : [])
    }

    // MARK: What tasks call

    /// Whether a lease is held, by the clock of the process.
    func holds(_ claim: UInt64) -> Bool { machine.holds(claim) && machine.life.end > now }

    /// Until when the process's session certainly exists.
    var sessionEnd: Duration { machine.life.end }

    func acquire(
        _ request: Acquire, timeout: Duration?, onLoss: @escaping (RedisDCError) -> Void = { _ in },
        _ finish: @escaping (Machine.Finish) -> Void
    ) -> UInt64 {
        let id = newCall(finish)
        losses[id] = onLoss
        let limit = timeout.map { WaitLimit(timeout: $0, deadline: now + $0) }
        perform(machine.acquire(id, request, limit: limit, now: now), for: id)
        return id
    }

    func call(_ operation: any EngineOperation, _ finish: @escaping (Machine.Finish) -> Void) {
        let id = newCall(finish)
        perform(machine.call(id, operation, now: now), for: id)
    }

    func release(_ claim: UInt64, _ finish: @escaping (Machine.Finish) -> Void) {
        let id = newCall(finish)
        losses[claim] = nil
        perform(machine.release(claim, releaser: id, now: now), for: id)
    }

    func cancel(_ id: UInt64) {
        switch machine.abandon(id, RedisDCError(.cancelled, "the task was cancelled"), now: now) {
        case .none: break
        case .send(let request): send(request)
        case .fail(let id, let error): finish(id, .failure(error))
        }
        arm()
    }

    /// Carries out an operation on a lease.
    func use(
        _ claim: UInt64, _ operation: (HeldClaim) -> any EngineOperation, _ finish: @escaping (Machine.Finish) -> Void
    ) {
        let id = newCall(finish)
        perform(machine.use(id, claim: claim, now: now, operation), for: id)
    }

    /// Releases a lease, of whose end no task is notified.
    func releaseSoon(_ claim: UInt64) {
        losses[claim] = nil
        perform(machine.release(claim, releaser: nil, now: now), for: nil)
    }

    func newCall(_ finish: @escaping (Machine.Finish) -> Void) -> UInt64 {
        lastCall += 1
        callers[lastCall] = finish
        return lastCall
    }

    func finish(_ id: UInt64, _ result: Machine.Finish) { callers.removeValue(forKey: id)?(result) }

    /// Whether a call waits for its result.
    func isUnfinished(_ id: UInt64) -> Bool { callers[id] != nil }

    func lose(_ claim: UInt64, _ error: RedisDCError) { losses.removeValue(forKey: claim)?(error) }

    /// Records that permits were consumed.
    func consumes(_ name: String) {
        let ttl = machine.settings.ttl.microseconds
        consumed.removeAll { $0.at < world.now - 2 * ttl }
        consumed.append((name, world.now))
    }

    /// The session has ended: what it has consumed lately may be there again.
    func doubtConsumed() {
        for (name, _) in consumed { world.family(TokenJudge.self).count(name) { $0.doubtConsumed() } }
        consumed = []
    }

    /// Returns once whether the release of the claim with this number has lost its reply.
    func takeDoubt(_ number: UInt64) -> Bool { doubtfulReleases.remove(number) != nil }

    // MARK: The timer

    func arm() {
        guard !isLeaving, let next = machine.nextTick.map(\.microsecondsRoundedUp) else { return }
        if let timerAt, timerAt <= next { return }
        timerAt = next
        world.agenda.add(at: max(world.now, next), .timer(self), isNeeded: { self.timerAt == next && !self.isDead }) {
            _ in
            guard self.timerAt == next else { return }
            self.timerAt = nil
            self.run { process in process.perform(process.machine.tick(now: process.now)) }
        }
    }

    // MARK: Actions

    func connected() {
        let first = machine.reconnected(now: now)
        if !first.isEmpty { link.hold() }
        for request in first { send(request) }
        perform(machine.start())
        mail?.client.connected()
    }

    /// Lets others use the new connection, when the session has been compared.
    func passOnConnection() {
        if !machine.isComparing { link.passOn() }
    }

    func perform(_ action: Machine.StartAction) {
        if case .subscribe(let life) = action { subscribe(life) }
    }

    func perform(_ action: Machine.CallAction, for id: UInt64?) {
        switch action {
        case .none: break
        case .send(let request): send(request)
        case .fail(let error): if let id { finish(id, .failure(error)) }
        case .sessionEnded(let end, let failure):
            perform(end)
            if let id, let failure { finish(id, .failure(failure)) }
        }
        arm()
    }

    func perform(_ actions: [Machine.ReplyAction]) {
        for action in actions {
            switch action {
            case .sessionEnded(let end): perform(end)
            case .send(let request): send(request)
            case .retry(let request, let pause):
                world.after(pause.microseconds, .timer(self)) { _ in self.run { $0.send(request) } }
            case .finish(let id, let result): finish(id, result)
            case .lose(let claim, let error): lose(claim, error)
            case .event(let event): observe(event)
            }
        }
    }

    func perform(_ actions: [Machine.WakeUpAction]) {
        for action in actions {
            switch action {
            case .sessionEnded(let end): perform(end)
            case .send(let request): send(request)
            case .finish(let id, let result): finish(id, result)
            case .lose(let claim, let error): lose(claim, error)
            case .recall(let cohort): cohort.recall(.waiting)
            }
        }
    }

    func perform(_ actions: [Machine.TickAction]) {
        for action in actions {
            switch action {
            case .sessionEnded(let end): perform(end)
            case .send(let request): send(request)
            case .fail(let id, let error): finish(id, .failure(error))
            case .event(let event): observe(event)
            }
        }
    }

    func perform(_ actions: [Machine.SessionEndAction]) {
        for action in actions {
            switch action {
            case .event(let event): observe(event)
            case .fail(let id, let error): finish(id, .failure(error))
            case .lose(let claim, let error): lose(claim, error)
            case .subscribe(let life): subscribe(life)
            }
        }
        link.passOn()
    }

    func observe(_ event: CoordinatorEvent) {
        if case .repaired(let operations) = event {
            world.check(world.judge.losses > 0, "\(name) has repaired \(operations) operations, and nothing was lost")
        }
        if case .dataLost = event {
            world.judge { $0.lossIsFinal() }
            world.judge { $0.dataLossAnnounced() }
            world.record { $0.add("dataLost", self) }
        }
        if case .sessionLost(_, let reason) = event {
            (sessionEnds, _) = (sessionEnds + 1, doubtConsumed())
            if reason == .dataLost || mustRepair { world.judge { $0.lossIsFinal() } }
            world.record { $0.add("sessionLost", self) { $0.note = reason == .dataLost ? "dataLost" : "expired" } }
        }
        world.note("\(name): \(event)")
    }

    // MARK: Requests

    func send(_ request: EngineRequest) {
        link.send(
            request.script, world.keys.keys(of: request), request.arguments,
            timeout: machine.settings.heartbeatInterval, name: "\(name): \(type(of: request.operation))",
            isFirst: machine.comesFirst(request)
        ) { [connection = machine.connection] in self.received($0, request, sentOn: connection) }
    }

    private func received(
        _ result: Result<RESPValue, RedisError>, _ request: EngineRequest, sentOn connection: UInt64
    ) {
        let answer: Result<EngineReply, Machine.Failure>
        switch result {
        case .success(let reply):
            if let decoded = EngineReply(reply, to: request.operation) {
                answer = .success(decoded)
            } else {
                world.violation("\(request.operation) has the unexpected reply \(reply)")
                return
            }
        case .failure(let error):
            if error.mayHaveRun, let release = request.operation as? Release { doubtfulReleases.insert(release.claim) }
            answer = .failure(Machine.Failure(error, keys: world.keys))
        }
        perform(machine.reply(request, answer, sentOn: connection, now: now))
        passOnConnection()
        if link.isCurrent, machine.hasRepaired { mustRepair = false }
        if case .success = answer { world.family(OrphanJudge.self).hasHandledReply(self, request) }
    }
}

/// The clock that the sessions of a process read.
///
/// `@unchecked`: a world is used by one thread.
private final class ProcessClock: @unchecked Sendable {
    var now = Duration.zero
}
