// Runs an EngineStateMachine against Redis: sends its requests, subscribes to its channel, runs its timer, resumes the
// callers.
//
// Engine+Callers: the operations that the primitives call. Engine+Actions: carries out the state machine's actions.
// Engine+Durability: waits until replicas, or the disk, have what was confirmed.
import CoordinationBase
import Hiredis

/// Runs the lock protocol of one partition: its session, its wake-up channel, its timer, and the callers that wait.
///
/// An actor on the client's executor.
actor Engine: WaiterRunner {
    typealias Progress = Begin?
    typealias Output = EngineStateMachine.Output
    typealias Failure = RedisDCError

    /// Passes a call to the state machine, when it is on the engine's executor. `nil` once it has: a call that waits needs
    /// no memory for it.
    typealias Begin = @Sendable (_ engine: isolated Engine, _ id: UInt64) -> EngineStateMachine.CallAction

    nonisolated let unownedExecutor: UnownedSerialExecutor
    nonisolated let redis: any EventLoopRedis
    nonisolated let clock: MonotonicClock
    nonisolated let instruments: EngineInstruments
    nonisolated let reportsLongWaits: Bool
    /// The coordinator's `run()`.
    private nonisolated let service: ServiceRun
    nonisolated let ids = OperationIDs()
    nonisolated let durableChanges: DurableChanges
    let namespace: Namespace
    let keys: PartitionKeys
    let settings: EngineStateMachine.Settings
    let usesWakeUps: Bool
    /// The description of this process in inspections.
    let nodeDescription: String
    private let report: @Sendable (CoordinatorEvent) -> Void
    private let executor: any SerialExecutor
    private nonisolated let bodies = RunningBodies()
    var machine: EngineStateMachine
    var runner = RunnerState<PendingCall>()
    /// The objects that are notified when a lease is lost, by claim.
    var watches: [UInt64: LeaseWatch] = [:]
    var wakeUpTask: Task<Void, Never>?
    /// The connection that no other caller has yet, while the machine compares what it knows with the server.
    var newConnection: (NewConnection, whenCompared: CheckedContinuation<Void, Never>)?
    /// Unregisters the comparison that ``allowStart()`` lets come first on each new connection.
    private var stopSendingFirst: (@Sendable () -> Void)?
    private var mayStart = false
    private var isNeeded: Bool

    init(
        redis: any EventLoopRedis, namespace: Namespace, partition: Int, settings: EngineStateMachine.Settings,
        usesWakeUps: Bool, durabilityTimeout: Duration, nodeDescription: String, clock: MonotonicClock,
        instruments: EngineInstruments,
        service: ServiceRun, report: @escaping @Sendable (CoordinatorEvent) -> Void
    ) {
        self.redis = redis
        self.namespace = namespace
        keys = PartitionKeys(namespace, partition: partition)
        self.settings = settings
        self.usesWakeUps = usesWakeUps
        self.nodeDescription = nodeDescription
        self.clock = clock
        self.instruments = instruments
        self.service = service
        reportsLongWaits = instruments.hasLogger
        self.report = report
        durableChanges = DurableChanges(
            redis: redis, keys: keys.resources, clock: clock, timeout: min(durabilityTimeout, .maxWait))
        executor = redis.serialExecutor
        unownedExecutor = executor.asUnownedSerialExecutor()
        isNeeded = partition == 0
        machine = EngineStateMachine(settings: settings) { SessionLife(id: randomSessionID(), now: clock.now) }
    }

    // MARK: WaiterRunner

    nonisolated static var cancellation: RedisDCError { RedisDCError(.cancelled, "the task was cancelled") }

    nonisolated func execute(_ body: @escaping @Sendable () -> Void) { redis.execute(body) }

    func begin(_ call: PendingCall) {
        isNeeded = true
        if mayStart { perform(machine.start()) }
        guard let begin = call.progress else { return }
        call.progress = nil
        perform(begin(self, call.id), for: call.id)
    }

    func abandon(_ id: UInt64, _ error: RedisDCError) { perform(machine.abandon(id, error, now: now)) }

    var nextTick: Duration? { machine.nextTick }

    func tick() { perform(machine.tick(now: now)) }

    func reportLongWaits(_ calls: [PendingCall]) {
        // With more of them, one cause is likely.
        for (request, state) in calls.lazy.compactMap({ self.unlimitedWait($0.id) }).prefix(5) {
            if let reason = unreachable?.message ?? state.delay(isLive: machine.isLive) {
                instruments.cannotAsk(for: request.purpose, reason)
            } else if case .queued = state {
                instruments.waitsForOthers(request.purpose, request.resource.kind.traits.unavailability)
            }
        }
    }

    private func unlimitedWait(_ id: UInt64) -> (Acquire, Machine.Claim.State)? {
        guard let claim = machine.claims[id], claim.limit == nil, claim.request.mayQueue else { return nil }
        return (claim.request, claim.state)
    }

    /// Why no request can be sent now; `nil` when nothing is known to prevent it.
    nonisolated var unreachable: RedisDCError? {
        guard service.hasBegun else {
            return RedisDCError(
                .notConnected, "nobody runs the coordinator: call its run(), or use withCoordinator")
        }
        return .noConnection(redis.connectionFailure)
    }

    // MARK: Life

    /// Allows a session to start: now if an operation needs it or this is partition 0, else with the first operation.
    func allowStart() {
        mayStart = true
        stopSendingFirst = redis.sendFirst(for: keys.resources[0]) { [weak self] connection in
            await self?.compare(on: connection)
        }
        if isNeeded { perform(machine.start()) }
    }

    /// Marks all leases as lost, waits until their bodies have returned, at most one TTL, then releases the leases and
    /// ends the session on the server.
    func stop() async {
        let (session, wasLive) = (machine.life.id, machine.isLive)
        stopSendingFirst?()
        perform(machine.stop())
        passOnConnection()
        await bodies.waitForEnd(within: settings.ttl, clock)
        wakeUpTask?.cancel()
        runner.stopTimer()
        if wasLive { await leave(session) }
    }

    /// Releases the claims and ends the session on the server. If Redis cannot be reached, they expire with the TTL.
    private func leave(_ session: String) async {
        for step in machine.shutdownRequests() {
            guard await isAnswered(step) else { break }
        }
        // One script deletes a limited number of the session's slots.
        while true {
            let reply = try? await redis.script(
                Scripts.leave, keys: keys.all, arguments: [.string(session)], timeout: .seconds(2))
            guard reply?.array?.first?.string == "more" else { return }
        }
    }

    /// Sends requests at the same time.
    ///
    /// - Returns: whether Redis has carried all of them out.
    private func isAnswered(_ requests: [EngineRequest]) async -> Bool {
        let (redis, keys) = (redis, keys)
        return await withTaskGroup(of: Bool.self) { group in
            for request in requests {
                group.addTask {
                    var request = request
                    // The first reply may name another family, whose script must run.
                    for _ in 0..<2 {
                        let reply = try? await redis.script(
                            request.script, keys: keys.keys(of: request), arguments: request.arguments,
                            timeout: .seconds(2))
                        guard case .family(let family)? = reply.flatMap({ EngineReply($0, to: request.operation) })
                        else { return reply != nil }
                        request.family = family
                    }
                    return false
                }
            }
            return await group.reduce(true) { $0 && $1 }
        }
    }

    /// Records that a body begins to run with a lease. A shutdown waits for it.
    nonisolated func bodyBegan() { bodies.begin() }
    /// Records that a body has returned.
    nonisolated func bodyEnded() { bodies.end() }

    // MARK: Leases

    /// Releases a lease. No caller waits for the outcome.
    func releaseUnobserved(_ claim: UInt64) {
        watches[claim] = nil
        perform(machine.release(claim, releaser: nil, now: now), for: nil)
    }

    func forgetWatch(_ claim: UInt64) { watches[claim] = nil }

    /// Returns whether a lease is held. If not, its loss is no longer watched.
    func checkHeld(_ claim: UInt64) -> Bool {
        let isHeld = machine.holds(claim)
        if !isHeld { watches[claim] = nil }
        return isHeld
    }

    // MARK: Events

    /// Records an event in logs and metrics, and reports it to the coordinator.
    func publish(_ event: CoordinatorEvent) {
        instruments.record(event)
        report(event)
    }
}
