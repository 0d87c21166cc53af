// Runs a ListenStateMachine against Redis: executes its actions, keeps its timer and its channel, resumes the callers.
import Hiredis
import Synchronization
import CoordinationBase

/// The callers in this process that listen to mailboxes of one partition.
actor Listeners {
    typealias Machine = ListenStateMachine
    /// Unsafe, which saves an allocation for each waiter. It is resumed exactly once, because
    /// `finish` first removes it from `waiting`.
    private typealias Waiter = UnsafeContinuation<PendingListen.Answer, Never>

    nonisolated let unownedExecutor: UnownedSerialExecutor
    private let executor: any SerialExecutor
    private nonisolated let redis: any Redis
    private let partition: Partition
    private nonisolated let clock: MonotonicClock
    private let callTimeout: Duration
    /// How long a registration to be notified lasts, in milliseconds; 0 without wake-ups.
    private let registrationLifetime: Int
    /// How often a waiting device renews its last-seen time, in milliseconds; 0 if devices are
    /// never forgotten.
    private let deviceRefreshInterval: Int
    private var machine: Machine
    private nonisolated let lastID = Atomic<UInt64>(0)
    private var waiting: [UInt64: Waiter] = [:]
    private var listener: Task<Void, Never>?
    private var timer: Task<Void, Never>?
    private var timerAt: Duration?

    init(
        redis: any Redis, partition: Partition, settings: Machine.Settings, configuration: PostOfficeConfiguration,
        clock: MonotonicClock
    ) {
        self.redis = redis
        self.partition = partition
        self.clock = clock
        callTimeout = configuration.callTimeout
        // A check renews a registration that is in the second half of its lifetime.
        registrationLifetime = settings.usesWakeUps ? settings.recheckInterval.wholeMilliseconds * 4 : 0
        deviceRefreshInterval = configuration.limits.deviceTTL.map { max(1, $0.wholeMilliseconds / 4) } ?? 0
        executor = redis.serialExecutor
        unownedExecutor = executor.asUnownedSerialExecutor()
        machine = Machine(settings: settings)
    }

    // MARK: Callers

    /// Creates a call, which does not begin yet.
    ///
    /// - Parameter timeout: `nil` waits without a limit, 0 reads once.
    nonisolated func pendingListen(
        _ mailbox: String, device: String, after cursor: Cursor?, maxMessages: Int, maxBytes: Int, timeout: Duration?
    ) -> PendingListen {
        let readsOnce = timeout == .zero
        let deadline = (readsOnce ? callTimeout : timeout).map { clock.now() + $0 }
        return PendingListen(
            lastID.wrappingAdd(1, ordering: .relaxed).newValue,
            ListenRequest(
                mailbox: mailbox, device: device, cursor: cursor == Cursor.none ? nil : cursor,
                maxMessages: maxMessages, maxBytes: maxBytes, deadline: deadline, readsOnce: readsOnce))
    }

    /// Runs a call and stores its answer in it.
    ///
    /// Callers pass their call to the actor and are resumed with the answer: a task on the client's
    /// executor does not change executors for it, and a task elsewhere does so once.
    nonisolated func run(_ call: PendingListen) async {
        call.answer = await withTaskCancellationHandler {
            await withUnsafeContinuation { (waiter: Waiter) in start(call, waiter) }
        } onCancel: {
            cancel(call.id)
        }
    }

    private nonisolated func start(_ call: PendingListen, _ waiter: Waiter) {
        if Task.isCancelled {
            waiter.resume(returning: PendingListen.Answer(.failure(Self.cancelled)))
            return
        }
        enter { listeners in listeners.begin(call, waiter) }
        // A cancellation before this line found nothing to cancel.
        if Task.isCancelled { cancel(call.id) }
    }

    private func begin(_ call: PendingListen, _ waiter: Waiter) {
        waiting[call.id] = waiter
        perform(machine.listen(call, now: clock.now()))
    }

    private nonisolated func cancel(_ id: UInt64) {
        enter { listeners in
            let action = listeners.machine.cancel(id, Self.cancelled, now: listeners.clock.now())
            if case .finish(let id, let error) = action { listeners.finish(id, .failure(error)) }
            listeners.arm()
        }
    }

    private nonisolated func enter(_ body: @escaping @Sendable (isolated Listeners) -> Void) {
        redis.execute { self.assumeIsolated { body($0) } }
    }

    private static var cancelled: QueueListenError { QueueListenError(.cancelled, "the task was cancelled") }

    /// For tests: the number of calls that have found their mailbox empty.
    var waitingCount: Int { machine.waitingCount }
    /// For tests: whether nothing of any call is left.
    var isEmpty: Bool { waiting.isEmpty && machine.isEmpty }

    /// Ends all calls with `.stopped`.
    func stop() {
        for action in machine.stop() {
            switch action {
            case .finish(let id, let error): finish(id, .failure(error))
            case .unsubscribe: unsubscribe()
            }
        }
        timer?.cancel()
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

    private func perform(_ actions: [Machine.SubscriptionAction]) {
        for action in actions {
            switch action {
            case .read(let read): send(read)
            case .check(let checks): send(checks)
            }
        }
        arm()
    }

    private func perform(_ action: Machine.GapAction) {
        if case .check(let checks) = action { send(checks) }
        arm()
    }

    private func perform(_ actions: [Machine.HintAction]) {
        for action in actions {
            switch action {
            case .read(let read): send(read)
            case .finish(let id, let outcome): finish(id, outcome)
            }
        }
        arm()
    }

    private func perform(_ actions: [Machine.ReplyAction]) {
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

    private func finish(_ id: UInt64, _ outcome: Machine.Outcome) {
        waiting.removeValue(forKey: id)?.resume(returning: PendingListen.Answer(outcome))
    }

    private func unsubscribe() {
        listener?.cancel()
        listener = nil
    }

    private func send(_ read: Machine.Read) {
        let request = read.request
        let arguments: [RedisArgument] =
            partition.head + partition.limits + [
                .string(request.device), .string(partition.process), .string("\(read.id)"),
                read.begins ? 1 : 0,
                .integer(read.waits ? registrationLifetime : 0), request.cursor.map { .integer($0.index) } ?? "",
                .bytes(request.cursor?.epoch.bigEndianBytes ?? []), .bytes(request.cursor?.tag.bigEndianBytes ?? []),
                .integer(request.maxMessages), .integer(request.maxBytes),
            ]
        let partitions = partition.total
        redis.post(Scripts.listen, keys: partition.keys(request.mailbox), arguments: arguments, timeout: callTimeout) {
            result in
            self.assumeIsolated { listeners in
                let reply = Self.parse(result) { reply throws(QueueListenError) in
                    try ReadReply(reply, partitions: partitions)
                }
                listeners.perform(listeners.machine.replyArrived(read.id, reply, now: listeners.clock.now()))
            }
        }
    }

    private func send(_ checks: [Machine.Check]) {
        let keys = [partition.meta] + checks.map { partition.box($0.mailbox) }
        var arguments: [RedisArgument] = [
            .integer(partition.total), .string(partition.process), .integer(registrationLifetime),
            .integer(deviceRefreshInterval),
        ]
        for check in checks {
            arguments += [
                .integer(check.cursor.index), .bytes(check.cursor.epoch.bigEndianBytes),
                .bytes(check.cursor.tag.bigEndianBytes),
                .string(check.device), .string("\(check.id)"),
            ]
        }
        let ids = checks.map(\.id)
        redis.post(Scripts.check, keys: keys, arguments: arguments, timeout: callTimeout) { result in
            self.assumeIsolated { listeners in
                let changed = Self.parse(result) { reply throws(QueueListenError) in
                    guard let numbers = reply.array?.compactMap(\.integer),
                        numbers.allSatisfy({ (1...ids.count).contains($0) })
                    else { throw QueueListenError(.serverError, "unexpected reply \(reply)") }
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
            return .failure(error.isPassing ? .transient(QueueListenError(error)) : .permanent(QueueListenError(error)))
        case .success(let reply):
            do { return .success(try read(reply)) } catch { return .failure(.permanent(error)) }
        }
    }

    private func subscribe(_ generation: Int) {
        listener?.cancel()
        let (own, all) = partition.channels
        listener = Task {
            await receiveWakeUps(from: redis, on: own, all) { wakeUp in
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
        case .hint(let bytes): perform(machine.hintsArrived(generation, MailHint.decode(bytes), now: now))
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
