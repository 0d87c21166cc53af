// Runs a ListenStateMachine against Redis: executes its actions, keeps its timer and its channel, resumes the callers.
import CoordinationBase
import Hiredis

/// The callers in this process that listen to mailboxes of one partition. An actor on the client's executor.
actor Listeners: WaiterRunner {
    typealias Progress = ListenProgress
    typealias Output = Delivery
    typealias Failure = QueueListenError
    typealias Machine = ListenStateMachine

    nonisolated let unownedExecutor: UnownedSerialExecutor
    private let executor: any SerialExecutor
    private nonisolated let redis: any EventLoopRedis
    private let partition: Partition
    nonisolated let clock: MonotonicClock
    nonisolated let reportsLongWaits: Bool
    private nonisolated let instruments: MailInstruments
    private nonisolated let ids = PollNumbers()
    nonisolated let acknowledgements: AcknowledgementMemory
    private let callTimeout: Duration
    /// The lifetime of a registration to be notified, in milliseconds; 0 without wake-ups.
    private let registrationLifetime: Int
    /// The interval at which a waiting device renews its last-seen time, in milliseconds; 0 if
    /// devices are never forgotten.
    private let deviceRefreshInterval: Int
    private var machine: Machine
    var runner = RunnerState<PendingListen>()
    private var wakeUpTask: Task<Void, Never>?
    /// Ends the observation of the command connection.
    private var stopObserving: (@Sendable () -> Void)?

    init(
        redis: any EventLoopRedis, partition: Partition, settings: Machine.Settings,
        configuration: PostOfficeConfiguration,
        clock: MonotonicClock, instruments: MailInstruments
    ) {
        self.redis = redis
        self.partition = partition
        self.clock = clock
        self.instruments = instruments
        reportsLongWaits = instruments.hasLogger
        acknowledgements = AcknowledgementMemory(
            redis: redis, partition: partition, configuration: configuration, clock: clock, instruments: instruments)
        callTimeout = configuration.callTimeout
        // A check renews a registration that is in the second half of its lifetime.
        registrationLifetime = settings.usesWakeUps ? settings.recheckInterval.wholeMilliseconds * 4 : 0
        deviceRefreshInterval = configuration.limits.deviceRefreshInterval.wholeMilliseconds
        executor = redis.serialExecutor
        unownedExecutor = executor.asUnownedSerialExecutor()
        machine = Machine(settings: settings)
    }

    /// Creates a call, which does not begin yet: ``WaiterRunner/carryOut(_:)`` begins it.
    ///
    /// - Parameter timeout: `nil` waits without a limit, 0 reads once.
    nonisolated func pendingListen(
        _ mailbox: String, device: String, reader: ListenRequest.Reader?, after cursor: Cursor?, maxMessages: Int,
        maxBytes: Int, timeout: Duration?
    ) -> PendingListen {
        let readsOnce = timeout == .zero
        let deadline = (readsOnce ? callTimeout : timeout).map { clock.now() + $0 }
        let request = ListenRequest(
            mailbox: mailbox, device: device, cursor: cursor == Cursor.none ? nil : cursor, reader: reader,
            maxMessages: maxMessages, maxBytes: maxBytes, deadline: deadline, readsOnce: readsOnce)
        return PendingListen(id: ids.next(), ListenProgress(request))
    }

    /// The number of the poll of a new reader: greater than those of all earlier readers and calls.
    nonisolated func nextPoll() -> UInt64 { ids.next() }

    // MARK: WaiterRunner

    nonisolated static var cancellation: QueueListenError { QueueListenError(.cancelled, "the task was cancelled") }

    nonisolated func execute(_ body: @escaping @Sendable () -> Void) { redis.execute(body) }

    func begin(_ call: PendingListen) {
        if stopObserving == nil {
            stopObserving = redis.sendFirst(for: nil) { [weak self] _ in
                await self?.reconnected()
            }
        }
        perform(machine.listen(call, now: clock.now()))
    }

    private func reconnected() { perform(machine.reconnected(now: clock.now())) }

    func abandon(_ id: UInt64, _ error: QueueListenError) {
        if case .finish(let id, let error) = machine.cancel(id, error, now: clock.now()) {
            finish(id, .failure(error))
        }
        arm()
    }

    var nextTick: Duration? { machine.nextTick }

    func tick() { perform(machine.tick(now: clock.now())) }

    func reportLongWaits(_ calls: [PendingListen]) {
        let delayed = calls.lazy.filter { $0.request.deadline == nil }.compactMap(self.delay)
        guard let reason = delayed.first else { return }
        instruments.cannotRead(reason, waiting: delayed.count)
    }

    /// Why a call cannot read its mailbox; `nil` when it has found the mailbox empty.
    private func delay(_ call: PendingListen) -> String? {
        if let failure = redis.connectionFailure { return "there is no connection to Redis: \(failure.message)" }
        return switch call.state {
        case .waiting: nil
        case .pausing: machine.failures[call.id].map { "\($0.error.code)" } ?? "Redis has not answered"
        case .subscribing, .queued, .reading: "Redis has not answered"
        }
    }

    /// For tests: the number of calls that have found their mailbox empty.
    var waitingCount: Int { machine.waitingCount }
    /// For tests: whether nothing of any call is left.
    var isEmpty: Bool { runner.operations.isEmpty && machine.isEmpty }

    /// Ends all calls with `.stopped`.
    func stop() {
        stopObserving?()
        for action in machine.stop() {
            switch action {
            case .finish(let id, let error): finish(id, .failure(error))
            case .unsubscribe: unsubscribe()
            }
        }
        runner.stopTimer()
    }

    // MARK: Actions

    private func perform(_ actions: [Machine.ListenAction]) {
        for action in actions {
            switch action {
            case .subscribe(let generation): subscribe(generation)
            case .read(let read): send(read)
            case .finish(let id, let outcome): finish(id, outcome)
            }
        }
        arm()
    }

    private func perform(_ action: Machine.GapAction) {
        if case .check(let checks) = action { send(checks) }
        arm()
    }

    private func perform(_ actions: [Machine.ReadAction]) {
        for action in actions {
            switch action {
            case .read(let read): send(read)
            case .finish(let id, let outcome): finish(id, outcome)
            }
        }
        arm()
    }

    private func perform(_ actions: [Machine.CheckAction]) {
        for action in actions {
            switch action {
            case .read(let read): send(read)
            case .check(let checks): send(checks)
            }
        }
        arm()
    }

    private func perform(_ actions: [Machine.TickAction]) {
        for action in actions {
            switch action {
            case .read(let read): send(read)
            case .check(let checks): send(checks)
            case .finish(let id, let outcome): finish(id, outcome)
            case .unsubscribe: unsubscribe()
            }
        }
        arm()
    }

    private func unsubscribe() {
        wakeUpTask?.cancel()
        wakeUpTask = nil
    }

    private func send(_ read: Machine.Read) {
        let request = read.request
        let arguments = partition.listenArguments(
            request.device, read.begins ? .begins : .continues, readsAhead: request.reader != nil,
            requiresDevice: request.reader?.requiresDevice ?? false, poll: read.poll,
            registrationLifetime: read.waits ? registrationLifetime : 0, cursor: request.cursor,
            maxMessages: request.maxMessages, maxBytes: request.maxBytes)
        let partitions = partition.total
        let acknowledging = request.reader == nil && request.cursor != nil ? acknowledgements.begin() : nil
        redis.post(
            Scripts.listen, keys: partition.keys.scriptKeys(request.mailbox), arguments: arguments, timeout: callTimeout
        ) {
            result in
            self.assumeIsolated { listeners in
                let reply = Self.parse(result) { reply throws(QueueListenError) in
                    try ReadReply(reply, partitions: partitions)
                }
                if let acknowledging { listeners.acknowledged(request, reply, of: acknowledging) }
                listeners.perform(listeners.machine.replyArrived(read.id, reply, now: listeners.clock.now()))
            }
        }
    }

    /// A call that acknowledges its cursor was answered. A device that still listens acknowledges it again with its next call.
    private func acknowledged(
        _ request: ListenRequest, _ reply: Result<ReadReply, Machine.Failure>,
        of call: AcknowledgementMemory.Confirmations.Call
    ) {
        if case .success(let reply) = reply, reply.status == .ok, let cursor = request.cursor {
            _ = acknowledgements.confirm(
                ConfirmedAcknowledgements.Acknowledgement(
                    mailbox: request.mailbox, device: request.device, cursor: cursor), of: call)
        }
        acknowledgements.end()
    }

    private func send(_ checks: [Machine.Check]) {
        let keys = [partition.keys.meta] + checks.map { partition.keys.box($0.mailbox) }
        var arguments: [RedisArgument] = [
            .string(partition.process), .integer(registrationLifetime), .integer(deviceRefreshInterval),
        ]
        arguments += checks.map { partition.checkArgument($0.device, poll: $0.poll, cursor: $0.cursor) }
        let ids = checks.map(\.id)
        redis.post(Scripts.check, keys: keys, arguments: arguments, timeout: callTimeout) { result in
            self.assumeIsolated { listeners in
                let changed = Self.parse(result) { reply throws(QueueListenError) in
                    guard let numbers = reply.array?.compactMap(\.integer),
                        numbers.allSatisfy({ (1...ids.count).contains($0) })
                    else { throw QueueListenError(.serverError, "unexpected reply: \(reply.form)") }
                    return numbers.map { ids[$0 - 1] }
                }
                listeners.perform(listeners.machine.checkReplied(changed, now: listeners.clock.now()))
            }
        }
    }

    private static func parse<Value>(
        _ result: Result<RESPValue, RedisError>, _ read: (RESPValue) throws(QueueListenError) -> Value
    ) -> Result<Value, Machine.Failure> {
        switch result {
        case .failure(let error):
            return .failure(
                error.isTransient ? .transient(QueueListenError(error)) : .permanent(QueueListenError(error)))
        case .success(let reply):
            do { return .success(try read(reply)) } catch { return .failure(.permanent(error)) }
        }
    }

    private func subscribe(_ generation: Int) {
        wakeUpTask?.cancel()
        let own = partition.keys.wakeUpChannel(of: partition.process)
        let all = partition.keys.commonChannel
        wakeUpTask = Task {
            await receiveWakeUps(from: redis, on: own, all, clock: clock) { wakeUp in
                self.assumeIsolated { $0.received(wakeUp, generation) }
            }
        }
    }

    private func received(_ wakeUp: WakeUp, _ generation: Int) {
        let now = clock.now()
        switch wakeUp {
        case .subscribed: perform(machine.subscriptionChanged(generation, isSubscribed: true, now: now))
        case .unsubscribed: perform(machine.subscriptionChanged(generation, isSubscribed: false, now: now))
        case .gap: perform(machine.gap(generation))
        case .message(let bytes): perform(machine.wakeUpsArrived(generation, MailWakeUp.decode(bytes), now: now))
        }
    }
}
