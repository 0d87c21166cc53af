// Runs an EngineStateMachine against Redis: sends its requests, keeps its channel and timer, resumes the callers.
//
// Engine+Callers: what the primitives ask of it. Engine+Actions: what the state machine asks of it.
import CoordinationBase
import Hiredis

/// The engine of one partition. An actor on the client's executor.
actor Engine: WaiterRunner {
    typealias Progress = EngineWork
    typealias Output = EngineStateMachine.Outcome
    typealias Failure = RedisDCError

    nonisolated let unownedExecutor: UnownedSerialExecutor
    nonisolated let redis: any EventLoopRedis
    nonisolated let clock: MonotonicClock
    nonisolated let instruments: EngineInstruments
    nonisolated let ids = OperationIDs()
    let namespace: Namespace
    let keys: PartitionKeys
    let settings: EngineStateMachine.Settings
    let usesWakeUps: Bool
    /// What inspections show of this process.
    let info: String
    private let report: @Sendable (CoordinatorEvent) -> Void
    private let executor: any SerialExecutor
    private nonisolated let bodies = RunningBodies()
    var machine: EngineStateMachine
    var runner = RunnerState<EngineOperation>()
    /// Notified when a lease is lost, by claim.
    var watches: [UInt64: LeaseWatch] = [:]
    var wakeUps: Task<Void, Never>?
    private var mayStart = false
    private var isNeeded: Bool

    init(
        redis: any EventLoopRedis, namespace: Namespace, partition: Int, settings: EngineStateMachine.Settings,
        usesWakeUps: Bool, info: String, clock: MonotonicClock, instruments: EngineInstruments,
        report: @escaping @Sendable (CoordinatorEvent) -> Void
    ) {
        self.redis = redis
        self.namespace = namespace
        keys = PartitionKeys(namespace, partition: partition)
        self.settings = settings
        self.usesWakeUps = usesWakeUps
        self.info = info
        self.clock = clock
        self.instruments = instruments
        self.report = report
        executor = redis.serialExecutor
        unownedExecutor = executor.asUnownedSerialExecutor()
        isNeeded = partition == 0
        machine = EngineStateMachine(settings: settings) { SessionLife(id: randomID(), now: clock.now) }
    }

    // MARK: WaiterRunner

    nonisolated static var cancellation: RedisDCError { RedisDCError(.cancelled, "the task was cancelled") }

    nonisolated func execute(_ body: @escaping @Sendable () -> Void) { redis.execute(body) }

    func begin(_ operation: EngineOperation) {
        isNeeded = true
        if mayStart { perform(machine.start()) }
        if case .release(let claim) = operation.progress { watches[claim] = nil }
        perform(operation.begin(&machine, now: now), for: operation.id)
    }

    func abandon(_ id: UInt64, _ error: RedisDCError) { perform(machine.abandon(id, error, now: now)) }

    var nextTick: Duration? { machine.nextTick }

    func tick() { perform(machine.tick(now: now)) }

    // MARK: Life

    /// Allows a session to begin as soon as there is need for one.
    func run() {
        mayStart = true
        if isNeeded { perform(machine.start()) }
    }

    /// Releases all leases, waits for cancelled bodies to return, and ends the session with the server.
    func stop() async {
        let (session, wasLive) = (machine.life.id, machine.isLive)
        perform(machine.stop())
        await bodies.waitForEnd(within: settings.ttl, clock)
        wakeUps?.cancel()
        runner.stopTimer()
        if wasLive { await leave(session) }
    }

    /// What cannot be ended now, because Redis cannot be reached, ends with the TTL.
    private func leave(_ session: String) async {
        let requests = machine.shutdownRequests()
        let (redis, keys, ttl) = (redis, keys, settings.ttl)
        await withTaskGroup(of: Void.self) { group in
            for request in requests {
                group.addTask {
                    _ = try? await redis.script(
                        request.script, keys: keys.resources, arguments: request.arguments(ttl: ttl),
                        timeout: .seconds(2))
                }
            }
        }
        _ = try? await redis.script(
            Scripts.engineLeave, keys: keys.all, arguments: [.string(session)], timeout: .seconds(2))
    }

    /// A body begins to run with a lease. A shutdown waits for it.
    nonisolated func bodyBegan() { bodies.begin() }
    nonisolated func bodyEnded() { bodies.end() }

    // MARK: Leases

    func releaseUnobserved(_ claim: UInt64) {
        watches[claim] = nil
        perform(machine.release(claim, releaser: nil, now: now), for: nil)
    }

    func forgetWatch(_ claim: UInt64) { watches[claim] = nil }

    func isHeld(_ claim: UInt64) -> Bool {
        let isHeld = machine.holds(claim)
        if !isHeld { watches[claim] = nil }
        return isHeld
    }

    // MARK: Events

    func happened(_ event: CoordinatorEvent) {
        instruments.happened(event)
        report(event)
    }
}
