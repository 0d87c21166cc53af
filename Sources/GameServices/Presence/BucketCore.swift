// The state of one bucket in this process: its session, its queue of operations, and its subscribers.
import CoordinationBase
import Hiredis

/// A bucket that this process uses.
///
/// Operations run in batches, one batch at a time, each with a number. A batch is repeated until it
/// is answered; Redis carries it out once.
actor BucketCore {
    /// An operation that waits to be sent, or for its result.
    struct Queued: Sendable {
        let id: UInt64
        let operation: PresenceOperation
        let encoded: [UInt8]
        let deadline: Duration
    }

    struct Session: Sendable {
        let id: String
        /// The number of the last batch that was sent, and of the last one that was answered.
        var sent = 0
        var answered = 0
        /// When the request began that has renewed it last.
        var renewed: Duration
    }

    let keys: PresenceKeys
    let redis: any Redis
    let configuration: PresenceConfiguration
    let clock: MonotonicClock
    let instruments: PresenceInstruments
    let reader: PresenceReader
    /// Removes this object from its ``Presence``.
    private let retire: @Sendable (BucketCore) -> Void

    var session: Session?
    /// What Redis has confirmed to the session.
    var confirmed: ConfirmedBatches
    /// The highest version that Redis has told.
    var highestVersion = 0
    /// Ends the observation of the command connection.
    var stopObserving: (@Sendable () -> Void)?
    var queue: [Queued] = []
    var waiting: [UInt64: CheckedContinuation<Result<PresenceResult, GameServiceError>, Never>] = [:]
    private var lastID: UInt64 = 0
    var isDraining = false
    /// The connections of clients by their tokens.
    var owners: [UInt64: PresenceOwner] = [:]
    /// The longest grace period that was put, and the time until which a graced object may remain.
    var maxGrace: Duration = .zero
    var inUseUntil: Duration = .zero

    private(set) var subscribers: [UInt64: AsyncStream<BucketSignal>.Continuation] = [:]
    private var lossStreams: [UInt64: AsyncStream<PresenceLoss>.Continuation] = [:]
    var subscription: Subscription?
    let subscriptionRequests = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    var sleeper: Task<Void, Never>?
    /// A tick was requested while none slept.
    var mustTick = false
    /// No further use: another object takes this one's place.
    private(set) var isRetired = false
    private(set) var isStopped = false

    init(
        keys: PresenceKeys, redis: any Redis, configuration: PresenceConfiguration, clock: MonotonicClock,
        instruments: PresenceInstruments, retire: @escaping @Sendable (BucketCore) -> Void
    ) {
        self.keys = keys
        self.redis = redis
        self.configuration = configuration
        self.clock = clock
        self.instruments = instruments
        self.retire = retire
        reader = PresenceReader(redis: redis, keys: keys)
        confirmed = ConfirmedBatches(maxAge: configuration.repairTime, maxBytes: configuration.repairBytes)
        inUseUntil = clock.now() + configuration.linger
    }

    deinit { stopObserving?() }

    // MARK: Operations

    /// Runs an operation and returns its result, or `nil` if the bucket must be opened again.
    func perform(_ operation: PresenceOperation) async -> Result<PresenceResult, GameServiceError>? {
        if isRetired { return nil }
        if isStopped { return .failure(.hasStopped) }
        lastID += 1
        let id = lastID
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                if Task.isCancelled, !operation.isDisconnect {
                    continuation.resume(returning: .failure(GameServiceError(.cancelled, "the task was cancelled")))
                    return
                }
                waiting[id] = continuation
                enqueue(operation, id: id)
                // A disconnect that was cancelled before is carried out nevertheless.
                if Task.isCancelled { cancel(id) }
            }
        } onCancel: {
            Task { await self.cancel(id) }
        }
    }

    /// Adds an operation for which nobody waits, or whose caller waits already.
    func enqueue(_ operation: PresenceOperation, id: UInt64? = nil) {
        if id == nil { lastID += 1 }
        queue.append(
            Queued(
                id: id ?? lastID, operation: operation, encoded: operation.encoded,
                deadline: clock.now() + configuration.callTimeout))
        inUseUntil = max(inUseUntil, clock.now() + configuration.linger)
        instruments.operation()
        guard !isDraining else { return }
        isDraining = true
        // Not a child of the caller's task, whose cancellation must not end what other callers wait for.
        Task { await drain() }
    }

    /// Ends the wait of a cancelled caller.
    private func cancel(_ id: UInt64) {
        let isQueued = queue.contains { $0.id == id }
        if isQueued { queue.removeAll { $0.id == id && !$0.operation.isDisconnect } }
        finish(id, .failure(GameServiceError(.cancelled, "the task was cancelled", mayHaveRun: !isQueued)))
    }

    /// Ends the wait for an operation. Returns whether its caller still waited.
    @discardableResult
    func finish(_ id: UInt64, _ result: Result<PresenceResult, GameServiceError>) -> Bool {
        guard let continuation = waiting.removeValue(forKey: id) else { return false }
        continuation.resume(returning: result)
        return true
    }

    // MARK: Losses

    func losses() -> AsyncStream<PresenceLoss>? {
        if isRetired { return nil }
        lastID += 1
        let id = lastID
        let (stream, continuation) = AsyncStream.makeStream(of: PresenceLoss.self)
        if isStopped {
            continuation.finish()
            return stream
        }
        lossStreams[id] = continuation
        continuation.onTermination = { _ in Task { await self.removeLossStream(id) } }
        return stream
    }

    private func removeLossStream(_ id: UInt64) { lossStreams[id] = nil }

    /// Ends a session that Redis has ended, or whose changes it has lost. The next operation begins
    /// another one.
    func lose(_ id: String, _ cause: PresenceLoss.Cause) {
        guard session?.id == id else { return }
        session = nil
        confirmed.removeAll()
        let lost = Array(owners.values)
        owners = [:]
        instruments.lost(cause)
        guard !lost.isEmpty else { return }
        for stream in lossStreams.values { stream.yield(PresenceLoss(cause: cause, owners: lost)) }
    }

    /// Reports connections that could not be repaired.
    func lose(_ lost: [PresenceOwner]) {
        for owner in lost { owners[owner.token] = nil }
        for stream in lossStreams.values { stream.yield(PresenceLoss(cause: .dataLost, owners: lost)) }
    }

    /// Why Redis no longer has the session. Before its time to live has passed, it cannot have expired.
    var causeOfLoss: PresenceLoss.Cause {
        guard let session else { return .expired }
        return clock.now() - session.renewed < configuration.ttl ? .dataLost : .expired
    }

    // MARK: Subscribers

    /// Adds a subscriber, or returns `nil` if the bucket must be opened again.
    func subscribe() -> AsyncStream<BucketSignal>? {
        if isRetired { return nil }
        lastID += 1
        let id = lastID
        let (stream, continuation) = AsyncStream.makeStream(
            of: BucketSignal.self, bufferingPolicy: .bufferingOldest(256))
        if isStopped {
            continuation.finish()
            return stream
        }
        subscribers[id] = continuation
        continuation.onTermination = { _ in Task { await self.unsubscribe(id) } }
        if subscribers.count == 1 { subscriptionRequests.continuation.yield() }
        return stream
    }

    private func unsubscribe(_ id: UInt64) {
        subscribers[id] = nil
        guard subscribers.isEmpty else { return }
        inUseUntil = max(inUseUntil, clock.now() + configuration.linger)
        subscription?.cancel()
    }

    /// A subscriber whose buffer is full misses this; the next position tells it so.
    func emit(_ signal: BucketSignal) { for subscriber in subscribers.values { subscriber.yield(signal) } }

    // MARK: End

    /// Whether the process has no use for the bucket.
    private var isUnused: Bool {
        owners.isEmpty && subscribers.isEmpty && lossStreams.isEmpty && queue.isEmpty && !isDraining
            && clock.now() >= inUseUntil
    }

    /// Retires the bucket if the process no longer uses it, and returns whether it did.
    func retireIfUnused() async -> Bool {
        guard isUnused else { return false }
        isRetired = true
        retire(self)
        await leave()
        stopObserving?()
        return true
    }

    /// Fails everything, and ends the session: the grace periods of its clients begin.
    func stop() async {
        isStopped = true
        queue = []
        for id in Array(waiting.keys) { finish(id, .failure(.hasStopped)) }
        for subscriber in subscribers.values { subscriber.finish() }
        for stream in lossStreams.values { stream.finish() }
        await leave()
        stopObserving?()
    }
}

/// A signal from the process to a subscriber of a bucket.
enum BucketSignal: Sendable {
    /// Changes were published.
    case changes(PresencePublication)
    /// The position that the bucket had a moment ago.
    case position(PresencePosition)
}

extension GameServiceError {
    static var hasStopped: GameServiceError { GameServiceError(.stopped, "presence has stopped") }
}
