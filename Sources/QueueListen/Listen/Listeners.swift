// Runs a ListenStateMachine against Redis: sends what it asks for, keeps its timer and its channel, resumes the callers.
import Hiredis
import Synchronization
import CoordinationBase

/// Those of this process who listen to mailboxes of one partition.
actor Listeners {
    typealias Machine = ListenStateMachine
    /// Unsafe saves an allocation for each waiter; it is resumed once, because `finish` takes it out of `waiting` first.
    private typealias Waiter = UnsafeContinuation<Poll.Answer, Never>

    nonisolated let unownedExecutor: UnownedSerialExecutor
    private let executor: any SerialExecutor
    private nonisolated let redis: any EventLoopRedis
    private let partition: Partition
    private nonisolated let clock: MonotonicClock
    private let callTimeout: Duration
    /// Milliseconds for which this process wants to be woken, and after which a device shows that it is alive.
    private let lease: Int
    private let refresh: Int
    private var machine: Machine
    private nonisolated let lastID = Atomic<UInt64>(0)
    private var waiting: [UInt64: Waiter] = [:]
    private var listener: Task<Void, Never>?
    private var timer: Task<Void, Never>?
    private var timerAt: Duration?

    init(
        redis: any EventLoopRedis, partition: Partition, settings: Machine.Settings,
        configuration: PostOfficeConfiguration,
        clock: MonotonicClock
    ) {
        self.redis = redis
        self.partition = partition
        self.clock = clock
        callTimeout = configuration.callTimeout
        // Renewed by every second look at the latest.
        lease = settings.usesWakeUps ? settings.recheckInterval.wholeMilliseconds * 4 : 0
        refresh = configuration.limits.deviceTTL.map { max(1, $0.wholeMilliseconds / 4) } ?? 0
        executor = redis.serialExecutor
        unownedExecutor = executor.asUnownedSerialExecutor()
        machine = Machine(settings: settings)
    }

    // MARK: Callers

    /// - Parameter timeout: `nil` waits as long as it takes, 0 looks once.
    nonisolated func poll(
        _ mailbox: String, device: String, after cursor: Cursor?, most: Int, maxBytes: Int, timeout: Duration?
    ) -> Poll {
        let isTry = timeout == .zero
        let deadline = (isTry ? callTimeout : timeout).map { clock.now() + $0 }
        return Poll(
            lastID.wrappingAdd(1, ordering: .relaxed).newValue,
            Poll.Wish(
                mailbox: mailbox, device: device, cursor: cursor == Cursor.none ? nil : cursor, most: most,
                maxBytes: maxBytes, deadline: deadline, isTry: isTry))
    }

    /// Callers hand their wish over and are resumed with the outcome: a task on the client's executor does not change its
    /// executor for it, and one elsewhere does so once.
    nonisolated func carryOut(_ poll: Poll) async {
        poll.answer = await withTaskCancellationHandler {
            await withUnsafeContinuation { (waiter: Waiter) in start(poll, waiter) }
        } onCancel: {
            cancel(poll.id)
        }
    }

    private nonisolated func start(_ poll: Poll, _ waiter: Waiter) {
        if Task.isCancelled {
            waiter.resume(returning: Poll.Answer(.failure(Self.cancelled)))
            return
        }
        enter { listeners in listeners.begin(poll, waiter) }
        // A cancel that came before has found nothing to cancel.
        if Task.isCancelled { cancel(poll.id) }
    }

    private func begin(_ poll: Poll, _ waiter: Waiter) {
        waiting[poll.id] = waiter
        perform(machine.listen(poll, now: clock.now()))
    }

    private nonisolated func cancel(_ id: UInt64) {
        enter { listeners in
            listeners.perform(listeners.machine.abandon(id, Self.cancelled, now: listeners.clock.now()))
        }
    }

    private nonisolated func enter(_ body: @escaping @Sendable (isolated Listeners) -> Void) {
        redis.execute { self.assumeIsolated { body($0) } }
    }

    private static var cancelled: QueueListenError { QueueListenError(.cancelled, "the task was cancelled") }

    // For tests.
    var waitingCount: Int { machine.waitingCount }
    var isEmpty: Bool { waiting.isEmpty && machine.isEmpty }

    /// Ends all that wait with `.stopped`.
    func stop() {
        perform(machine.stop())
        timer?.cancel()
    }

    // MARK: Actions

    private func perform(_ actions: [Machine.Action]) {
        for action in actions {
            switch action {
            case .subscribe(let generation): subscribe(generation)
            case .unsubscribe:
                listener?.cancel()
                listener = nil
            case .read(let read): send(read)
            case .check(let checks): send(checks)
            case .finish(let id, let result):
                waiting.removeValue(forKey: id)?.resume(returning: Poll.Answer(result))
            }
        }
        arm()
    }

    private func send(_ read: Machine.Read) {
        let wish = read.wish
        let arguments: [RedisArgument] =
            partition.head + partition.limits + [
                .string(wish.device), .string(partition.process), .string("\(read.id)"),
                read.begins ? 1 : 0,
                .integer(read.waits ? lease : 0), wish.cursor.map { .integer($0.index) } ?? "",
                .bytes(wish.cursor?.epoch.mark ?? []), .bytes(wish.cursor?.tag.mark ?? []), .integer(wish.most),
                .integer(wish.maxBytes),
            ]
        let partitions = partition.total
        redis.post(Scripts.listen, keys: partition.keys(wish.mailbox), arguments: arguments, timeout: callTimeout) {
            result in
            self.assumeIsolated { listeners in
                let reply = Self.outcome(result) { reply throws(QueueListenError) in
                    try ReadReply(reply, partitions: partitions)
                }
                listeners.perform(listeners.machine.reply(read.id, reply, now: listeners.clock.now()))
            }
        }
    }

    private func send(_ checks: [Machine.Check]) {
        let keys = [partition.meta] + checks.map { partition.box($0.mailbox) }
        var arguments: [RedisArgument] = [
            .integer(partition.total), .string(partition.process), .integer(lease),
            .integer(refresh),
        ]
        for check in checks {
            arguments += [
                .integer(check.cursor.index), .bytes(check.cursor.epoch.mark), .bytes(check.cursor.tag.mark),
                .string(check.device), .string("\(check.id)"),
            ]
        }
        let ids = checks.map(\.id)
        redis.post(Scripts.check, keys: keys, arguments: arguments, timeout: callTimeout) { result in
            self.assumeIsolated { listeners in
                let changed = Self.outcome(result) { reply throws(QueueListenError) in
                    guard let numbers = reply.array?.compactMap(\.integer),
                        numbers.allSatisfy({ (1...ids.count).contains($0) })
                    else { throw QueueListenError(.serverError, "unexpected reply \(reply)") }
                    return numbers.map { ids[$0 - 1] }
                }
                listeners.perform(listeners.machine.checked(changed, now: listeners.clock.now()))
            }
        }
    }

    private static func outcome<Value>(
        _ result: Result<RESPValue, RedisError>, _ read: (RESPValue) throws(QueueListenError) -> Value
    ) -> Result<Value, Machine.Failure> {
        switch result {
        case .failure(let error):
            return .failure(error.isTransient ? .passing(QueueListenError(error)) : .fatal(QueueListenError(error)))
        case .success(let reply):
            do { return .success(try read(reply)) } catch { return .failure(.fatal(error)) }
        }
    }

    private func subscribe(_ generation: Int) {
        listener?.cancel()
        let (own, all) = partition.channels
        listener = Task {
            await CoordinationBase.listen(redis, to: own, all) { wakeUp in
                self.assumeIsolated { $0.received(wakeUp, generation) }
            }
        }
    }

    private func received(_ wakeUp: WakeUp, _ generation: Int) {
        let now = clock.now()
        switch wakeUp {
        case .listening: perform(machine.listening(generation, hears: true, now: now))
        case .deaf: perform(machine.listening(generation, hears: false, now: now))
        case .gap: perform(machine.gap(generation, now: now))
        case .hint(let bytes): perform(machine.hint(generation, MailHint.all(in: bytes), now: now))
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
