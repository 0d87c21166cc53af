// Runs an EngineStateMachine against Redis: sends what it asks for, keeps its timer and its channel, resumes the callers.
import Hiredis
import Synchronization
import CoordinationBase

actor Engine {
    typealias Machine = EngineStateMachine
    /// Unsafe saves an allocation for each waiter; it is resumed once, because `finish` takes it out of `waiting` first.
    private typealias Waiter = UnsafeContinuation<PendingOperation.Answer, Never>

    nonisolated let unownedExecutor: UnownedSerialExecutor
    private nonisolated let redis: any EventLoopRedis
    private let namespace: Namespace
    private let keys: [String]
    /// Without the sessions, which few scripts need.
    private let tableKeys: [String]
    private let wakePrefix: String
    private let settings: Machine.Settings
    private let usesWakeUps: Bool
    private let info: String
    private nonisolated let clock: MonotonicClock
    nonisolated let instruments: EngineInstruments
    private let tell: @Sendable (CoordinatorEvent) -> Void
    private let executor: any SerialExecutor
    private var machine: Machine
    private nonisolated let lastID = Atomic<UInt64>(0)
    private nonisolated let bodies = Bodies()
    private var waiting: [UInt64: Waiter] = [:]
    private var watches: [UInt64: LeaseWatch] = [:]
    private var listener: Task<Void, Never>?
    private var timer: Task<Void, Never>?
    private var timerAt: Duration?
    private var mayStart = false
    private var isNeeded: Bool

    init(
        redis: any EventLoopRedis, namespace: Namespace, partition: Int, settings: Machine.Settings, usesWakeUps: Bool,
        info: String, clock: MonotonicClock, instruments: EngineInstruments,
        tell: @escaping @Sendable (CoordinatorEvent) -> Void
    ) {
        self.redis = redis
        self.namespace = namespace
        keys = ["book", "index", "sessions"].map { namespace.key($0, partition: partition) }
        tableKeys = Array(keys.prefix(2))
        wakePrefix = namespace.key("wake:", partition: partition)
        self.settings = settings
        self.usesWakeUps = usesWakeUps
        self.info = info
        self.clock = clock
        self.instruments = instruments
        self.tell = tell
        executor = redis.serialExecutor
        unownedExecutor = executor.asUnownedSerialExecutor()
        isNeeded = partition == 0
        machine = Machine(settings: settings) { SessionLife(id: randomID(), now: clock.now) }
    }

    // MARK: Life

    /// From now on a session is begun when there is need for one.
    func run() {
        mayStart = true
        if isNeeded { perform(machine.start()) }
    }

    private func need() {
        isNeeded = true
        if mayStart { perform(machine.start()) }
    }

    /// Lets go of everything, waits for the bodies that are told so, and ends the session with the server.
    func stop() async {
        let session = machine.sessionLife.id
        let wasLive = machine.isLive
        perform(machine.stop())
        await bodies.end(within: settings.ttl, clock)
        listener?.cancel()
        timer?.cancel()
        if wasLive { await leave(session) }
    }

    /// What cannot be ended now, because Redis cannot be reached, ends with the TTL: there is nobody left to be told.
    private func leave(_ session: String) async {
        let requests = machine.shutdownRequests()
        let (redis, keys, ttl) = (redis, keys, settings.ttl)
        await withTaskGroup(of: Void.self) { group in
            for request in requests {
                group.addTask {
                    _ = try? await redis.script(
                        request.script, keys: Array(keys.prefix(2)), arguments: request.arguments(ttl: ttl),
                        timeout: .seconds(2))
                }
            }
        }
        _ = try? await redis.script(
            Scripts.engineLeave, keys: keys, arguments: [.string(session)], timeout: .seconds(2))
    }

    /// Bodies that run with something of ours in hand: a shutdown waits for them.
    nonisolated func bodyBegan() { bodies.begin() }
    nonisolated func bodyEnded() { bodies.end() }

    // MARK: Callers

    // They hand their request over and are resumed with the outcome: a task on the client's executor does not change its
    // executor for it, and one elsewhere does so once.

    nonisolated func makePendingOperation(_ work: PendingOperation.Work) -> PendingOperation {
        PendingOperation(lastID.wrappingAdd(1, ordering: .relaxed).newValue, work)
    }

    nonisolated var now: Duration { clock.now() }

    /// Returns when the pendingOperation has its result. A cancelled task has it as soon as it is certain that nothing is held.
    nonisolated func run(_ pendingOperation: PendingOperation) async {
        pendingOperation.answer = await withTaskCancellationHandler {
            await withUnsafeContinuation { (waiter: Waiter) in start(pendingOperation, waiter) }
        } onCancel: {
            cancel(pendingOperation.id)
        }
    }

    private nonisolated func start(_ pendingOperation: PendingOperation, _ waiter: Waiter) {
        if Task.isCancelled {
            waiter.resume(returning: PendingOperation.Answer(.failure(Self.cancelled)))
            return
        }
        enter { engine in engine.begin(pendingOperation, waiter) }
        // A cancel that came before has found nothing to cancel.
        if Task.isCancelled { cancel(pendingOperation.id) }
    }

    nonisolated func call(_ operation: Operation) async throws(RedisDCError) -> Int {
        let pendingOperation = makePendingOperation(.call(operation))
        await run(pendingOperation)
        return try pendingOperation.count()
    }

    /// Gives a lease back, whether the task is cancelled or not.
    nonisolated func release(_ claim: UInt64) async throws(RedisDCError) {
        let pendingOperation = makePendingOperation(.release(claim: claim))
        pendingOperation.answer = await withUnsafeContinuation { (waiter: Waiter) in
            enter { engine in
                engine.watches[claim] = nil
                engine.begin(pendingOperation, waiter)
            }
        }
        _ = try pendingOperation.count()
    }

    /// Gives all but so many of a lease's permits back.
    nonisolated func reduce(_ claim: UInt64, keep: Int) async throws(RedisDCError) -> Int {
        try await use(claim, .reduce(keep: keep)).count()
    }

    /// What a lease stands for: an item, or what all have brought.
    nonisolated func read(_ claim: UInt64) async throws(RedisDCError) -> [[UInt8]] {
        try await use(claim, .read).values()
    }

    /// Turns a lease into a permit of another resource. Then it is not held any more.
    nonisolated func pass(_ claim: UInt64, to resource: Resource, item: [UInt8]? = nil) async throws(RedisDCError) {
        _ = try await use(claim, .pass(to: resource, item: item)).count()
        enter { engine in engine.watches[claim] = nil }
    }

    private nonisolated func use(_ claim: UInt64, _ use: Machine.Use) async -> PendingOperation {
        let pendingOperation = makePendingOperation(.use(claim: claim, use))
        await run(pendingOperation)
        return pendingOperation
    }

    /// Whether a lease is still held, after a request that may have let it go.
    nonisolated func holds(_ claim: UInt64) async -> Bool {
        await withCheckedContinuation { continuation in
            enter { engine in
                let holds = engine.machine.holds(claim)
                if !holds { engine.watches[claim] = nil }
                continuation.resume(returning: holds)
            }
        }
    }

    /// Gives a lease back that nobody waits for.
    nonisolated func releaseSoon(_ claim: UInt64) {
        enter { engine in
            engine.watches[claim] = nil
            engine.perform(engine.machine.release(claim, releaser: nil, now: engine.clock.now()))
        }
    }

    private nonisolated func cancel(_ id: UInt64) {
        enter { engine in
            engine.perform(engine.machine.abandon(id, Self.cancelled, now: engine.clock.now()))
        }
    }

    private nonisolated func enter(_ body: @escaping @Sendable (isolated Engine) -> Void) {
        redis.execute { self.assumeIsolated { body($0) } }
    }

    private func begin(_ pendingOperation: PendingOperation, _ waiter: Waiter) {
        need()
        waiting[pendingOperation.id] = waiter
        perform(pendingOperation.begin(&machine, now: clock.now()))
    }

    private static var cancelled: RedisDCError { RedisDCError(.cancelled, "the task was cancelled") }

    // MARK: Actions

    private func perform(_ actions: [Machine.Action]) {
        for action in actions {
            switch action {
            case .listen(let life): listen(life)
            case .join(let life): Task { await join(life) }
            case .send(let request, .zero): send(request)
            case .send(let request, let pause): Task { await send(request, after: pause) }
            case .finish(let id, let result): finish(id, result)
            case .lose(let claim, let error):
                instruments.leaseLost()
                watches.removeValue(forKey: claim)?.lose(error)
            case .event(let event): happened(event)
            }
        }
        arm()
    }

    private func happened(_ event: CoordinatorEvent) {
        instruments.happened(event)
        tell(event)
    }

    private func finish(_ id: UInt64, _ result: Result<Machine.Outcome, RedisDCError>) {
        guard let waiter = waiting.removeValue(forKey: id) else { return }
        // Before the caller has it, so that no loss goes unheard.
        if case .success(.granted(let grant)) = result { watches[id] = grant.watch }
        waiter.resume(returning: PendingOperation.Answer(result))
    }

    private func send(_ request: EngineRequest, after pause: Duration) async {
        try? await clock.sleep(pause)
        send(request)
    }

    private func send(_ request: EngineRequest) {
        redis.post(
            request.script, keys: request.keyCount == keys.count ? keys : tableKeys,
            arguments: request.arguments(ttl: settings.ttl), timeout: settings.heartbeatInterval
        ) { result in self.assumeIsolated { $0.received(result, request) } }
    }

    private func received(_ result: Result<RESPValue, RedisError>, _ request: EngineRequest) {
        let answer: Result<EngineReply, Machine.Failure>
        switch result {
        case .success(let reply):
            answer =
                EngineReply(reply, to: request.operation).map { .success($0) }
                ?? .failure(.fatal(RedisDCError(.serverError, "unexpected reply \(reply)")))
        case .failure(let error):
            let failure = Machine.Failure(error, keys: keys)
            if case .retry = failure { instruments.retried() }
            answer = .failure(failure)
        }
        if case .success(.heartbeat) = answer { instruments.heartbeat(waiting: waiting.count) }
        perform(machine.reply(request, answer, now: clock.now()))
    }

    private func join(_ life: SessionLife) async {
        let arguments: [RedisArgument] = [
            .string(life.id), .string(randomID()), .integer(settings.ttl.wholeMicroseconds),
            .integer(namespace.partitions), .string(info),
        ]
        do throws(RedisError) {
            let reply = try await redis.script(
                Scripts.engineJoin, keys: keys, arguments: arguments, timeout: settings.heartbeatInterval)
            switch (reply.array?.first?.string, reply.array?.last?.string) {
            case ("ok", let epoch?): perform(machine.joined(life.id, epoch: epoch, now: clock.now()))
            case ("lost", _): perform(machine.joinedTooLate(life.id))
            case ("conflict", let partitions?):
                await joinFailed(life, .fatal(namespace.conflict(with: partitions)))
            default: await joinFailed(life, .fatal(RedisDCError(.serverError, "unexpected reply \(reply)")))
            }
        } catch {
            await joinFailed(life, Machine.Failure(error, keys: keys))
        }
    }

    private func joinFailed(_ life: SessionLife, _ failure: Machine.Failure) async {
        // What waits is told at once; another attempt is made a little later, for what comes then.
        let actions = machine.joinFailed(life.id, failure, now: clock.now())
        for action in actions { if case .finish(let id, let result) = action { finish(id, result) } }
        if case .fatal(let error) = failure { happened(.sessionRefused(error)) }
        let pause: Duration = if case .fatal = failure { .seconds(1) } else { .milliseconds(50) }
        try? await clock.sleep(pause)
        for action in actions { if case .join(let life) = action { perform([.join(life)]) } }
    }

    private func listen(_ life: SessionLife) {
        listener?.cancel()
        guard usesWakeUps else {
            perform(machine.listening(life.id, hears: false, now: clock.now()))
            return
        }
        listener = Task {
            await CoordinationBase.listen(redis, to: wakePrefix + life.id) { wakeUp in
                self.assumeIsolated { $0.received(wakeUp, for: life) }
            }
        }
    }

    private func received(_ wakeUp: WakeUp, for life: SessionLife) {
        let now = clock.now()
        switch wakeUp {
        case .listening: perform(machine.listening(life.id, hears: true, now: now))
        case .deaf(let error) where error.code == .clientStopped:
            perform(machine.refused(RedisDCError(error, key: wakePrefix)))
        case .deaf: perform(machine.listening(life.id, hears: false, now: now))
        case .hint(let bytes): perform(machine.hint(life.id, String(decoding: bytes, as: UTF8.self), now: now))
        case .gap: perform(machine.gap(life.id, now: now))
        }
    }

    // MARK: Timer

    private func arm() {
        guard let next = machine.nextTick else { return }
        if let timerAt, timerAt <= next { return }
        timer?.cancel()
        timerAt = next
        timer = Task {
            try? await clock.sleep(max(.zero, next - clock.now()))
            if Task.isCancelled { return }
            timerAt = nil
            perform(machine.tick(now: clock.now()))
        }
    }
}

extension Namespace {
    /// Nodes that disagree about the number of partitions would look for a name in different places.
    func conflict(with partitions: String) -> RedisDCError {
        RedisDCError(
            .conflict,
            "namespace \"\(name)\" has \(partitions) partitions, this coordinator is configured with \(self.partitions)"
        )
    }
}

extension EngineStateMachine.Failure {
    init(_ error: RedisError, keys: [String]) {
        self =
            error.isTransient ? .retry(error) : .fatal(RedisDCError(error, key: keys.joined(separator: ", ")))
    }
}

/// Counts bodies, and waits until there are none.
private final class Bodies: Sendable {
    private struct State {
        var count = 0
        var whenOver: CheckedContinuation<Void, Never>?

        mutating func taken() -> CheckedContinuation<Void, Never>? {
            defer { whenOver = nil }
            return whenOver
        }
    }
    private let state = Locked(State())

    func begin() { state.withLock { $0.count += 1 } }

    func end() {
        state.withLock { state in
            state.count -= 1
            return state.count == 0 ? state.taken() : nil
        }?.resume()
    }

    func end(within limit: Duration, _ clock: MonotonicClock) async {
        let timeout = Task { [state] in
            try? await clock.sleep(limit)
            state.withLock { $0.taken() }?.resume()
        }
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if state.count > 0 { state.whenOver = continuation }
                return state.count == 0
            }
            if isOver { continuation.resume() }
        }
        timeout.cancel()
    }
}
