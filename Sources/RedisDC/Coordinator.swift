// The process's part in coordinating with others: its session, and the resources it makes handles for.
import Foundation
public import Hiredis
import CoordinationBase

#if ServiceLifecycleSupport
    public import ServiceLifecycle
#endif

/// Coordinates this process with others through a Redis.
///
/// ```swift
/// try await withCoordinator(redis: redis) { coordinator in
///     let mutex = try coordinator.mutex("orders")
///     try await mutex.withLock { lease in … }
/// }
/// ```
///
/// In a server, make one and run it with the other services, after the client and before what uses it:
///
/// ```swift
/// let coordinator = try Coordinator(redis: redis)
/// let services = ServiceGroup(services: [redis, coordinator, server], logger: logger)
/// ```
///
/// - It owns a session with Redis. One heartbeat every third of its TTL keeps all that the process holds, however much
///   that is. When heartbeats do not get through, the process finds out by its own clock, before Redis may give what it
///   holds to anyone else: leases are lost, bodies cancelled, ``events()`` tells, and a new session begins.
/// - Waiting costs no connection: all wake-ups of the process come on the client's one subscription connection. They are
///   hints; without them everything works, only slower.
/// - An operation whose answer is lost is sent again under the same number and has one effect.
/// - When the process dies, what it holds is free after the TTL, and its places in queues are passed over at once or with
///   it.
public final class Coordinator: Sendable {
    public let namespace: String
    public let configuration: CoordinatorConfiguration
    let place: Namespace
    let redis: any Redis
    private let engines: [Engine]
    private let hub: EventHub
    private let service = ServiceRun("Coordinator")
    private let partitionsAgree = Locked(false)

    /// - Parameters:
    ///   - namespace: sets this application's resources apart from others' in the same Redis: 1 to 512 bytes of UTF-8 without
    ///     control characters, braces or colons.
    /// - Throws: `.invalidArgument`. Nothing is sent.
    public convenience init(
        redis: any Redis, namespace: String = "default", configuration: CoordinatorConfiguration = .init()
    ) throws(RedisDCError) {
        try self.init(redis: redis, namespace: namespace, configuration: configuration, clock: .continuous())
    }

    init(
        redis: any Redis, namespace: String, configuration: CoordinatorConfiguration, clock: MonotonicClock
    ) throws(RedisDCError) {
        try configuration.validate(namespace: namespace)
        self.redis = redis
        self.namespace = namespace
        self.configuration = configuration
        let place = Namespace(namespace, partitions: configuration.partitions)
        let events = EventHub()
        var settings = EngineStateMachine.Settings()
        settings.ttl = configuration.ttl
        settings.callTimeout = min(configuration.callTimeout, .maxWait)
        settings.pollInterval = min(configuration.pollInterval, .maxWait)
        settings.failsWaitersOnLoss = configuration.failsWaitersOnLoss
        let info = Self.info(configuration)
        let instruments = EngineInstruments(configuration.instruments)
        let eventLoopRedis = redis.onEventLoop()
        engines = (0..<configuration.partitions).map { partition in
            Engine(
                redis: eventLoopRedis, namespace: place, partition: partition, settings: settings,
                usesWakeUps: configuration.usesWakeUps, info: info, clock: clock, instruments: instruments
            ) { events.tell($0, partition: partition) }
        }
        self.place = place
        hub = events
    }

    private static func info(_ configuration: CoordinatorConfiguration) -> String {
        let process = ProcessInfo.processInfo
        return "\(process.hostName) \(process.processIdentifier) \(configuration.nodeName ?? process.processName)"
    }

    // MARK: Run

    /// Keeps the session until the task is cancelled or a graceful shutdown begins. Call it once.
    ///
    /// Then it takes no new work: waiters throw `.stopped`, bodies of `withLock` and `withPermit` are cancelled and waited
    /// for (at most for the TTL), and what is held is free at once.
    public func run() async {
        // The first partition knows how many there are: the others come when it has agreed.
        let started = hub.stream(partition: 0)
        let startEngines: @Sendable () async -> Void = { [engines] in
            await engines[0].run()
            guard engines.count > 1 else { return }
            for await event in started {
                guard case .sessionStarted = event else { continue }
                for engine in engines.dropFirst() { await engine.run() }
                return
            }
        }
        await service.run([startEngines])
        // Not in this task, which may be cancelled.
        await Task { [self] in
            await withTaskGroup(of: Void.self) { group in
                for engine in engines { group.addTask { await engine.stop() } }
            }
        }.value
        hub.finish()
    }

    /// What happens to the sessions from now on. A reader that does not read misses the oldest of more than 64 events.
    public func events() -> AsyncStream<CoordinatorEvent> { hub.stream() }

    // MARK: Resources

    /// A counting semaphore that all nodes share.
    ///
    /// - Parameters:
    ///   - permits: how many it is made with when it is not there, 0 to 1,000,000. `nil` wants it to be there.
    /// - Throws: `.invalidArgument`. Nothing is sent: the first operation makes it, and throws `.conflict` when it is there
    ///   with another number.
    public func semaphore(
        _ name: String, permits: Int?, fairness: Fairness = .fifo
    ) throws(RedisDCError) -> Semaphore {
        try ResourceName.validate(name)
        if let permits, !(0...Semaphore.maxPermits).contains(permits) {
            throw RedisDCError(.invalidArgument, "permits is \(permits), expected 0 to \(Semaphore.maxPermits)")
        }
        let resource = Resource(
            name: name, kind: .semaphore, permits: permits, policy: fairness == .fifo ? "f" : "b")
        return Semaphore(resource: resource, engine: engine(of: name), coordinator: self)
    }

    /// A mutex that all nodes share.
    ///
    /// - Parameter isReentrant: whether a task that holds it may lock it again.
    /// - Throws: `.invalidArgument`. Nothing is sent.
    public func mutex(_ name: String, isReentrant: Bool = false) throws(RedisDCError) -> DistributedMutex {
        try ResourceName.validate(name)
        let resource = Resource(name: name, kind: .mutex, permits: 1)
        return DistributedMutex(
            resource: resource, engine: engine(of: name), coordinator: self, isReentrant: isReentrant)
    }

    func engine(of name: String) -> Engine { engines[place.partition(of: name)] }

    /// Runs a script that only looks.
    func look(_ script: RedisScript, partition: Int, _ arguments: [RedisArgument]) async throws(RedisDCError)
        -> RESPValue
    {
        try await checkPartitions()
        let keys = ["book", "index", "sessions"].map { place.key($0, partition: partition) }
        do { return try await redis.script(script, keys: keys, arguments: arguments) } catch {
            throw RedisDCError(error, key: keys[0])
        }
    }

    /// Whoever looks needs no session, which would have been refused, and with another number of partitions would look
    /// in the wrong place.
    private func checkPartitions() async throws(RedisDCError) {
        if partitionsAgree.withLock({ $0 }) { return }
        let book = place.key("book", partition: 0)
        let found: String?
        do { found = try await redis.send("HGET", .string(book), "partitions").string } catch {
            throw RedisDCError(error, key: book)
        }
        guard let found else { return }
        guard found == String(place.partitions) else { throw place.conflict(with: found) }
        partitionsAgree.withLock { $0 = true }
    }
}

#if ServiceLifecycleSupport
    extension Coordinator: Service {}
#endif

/// Makes a coordinator, runs it while `body` runs, and ends its session.
public func withCoordinator<Result>(
    redis: any Redis, namespace: String = "default", configuration: CoordinatorConfiguration = .init(),
    _ body: (Coordinator) async throws -> Result
) async throws -> Result {
    let coordinator = try Coordinator(redis: redis, namespace: namespace, configuration: configuration)
    return try await whileRunning({ await coordinator.run() }, { try await body(coordinator) })
}

/// Passes events on to whoever reads them.
private final class EventHub: Sendable {
    private struct State {
        var readers: [(partition: Int?, AsyncStream<CoordinatorEvent>.Continuation)] = []
        var isOver = false
    }
    private let state = Locked(State())

    func stream(partition: Int? = nil) -> AsyncStream<CoordinatorEvent> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: CoordinatorEvent.self, bufferingPolicy: .bufferingNewest(64))
        let isOver = state.withLock { state in
            state.readers.append((partition, continuation))
            return state.isOver
        }
        if isOver { continuation.finish() }
        return stream
    }

    func tell(_ event: CoordinatorEvent, partition: Int) {
        state.withLock { state in
            state.readers.removeAll { reader in
                guard reader.partition == nil || reader.partition == partition else { return false }
                if case .terminated = reader.1.yield(event) { return true }
                return false
            }
        }
    }

    func finish() {
        let readers = state.withLock { state in
            state.isOver = true
            defer { state.readers = [] }
            return state.readers
        }
        for reader in readers { reader.1.finish() }
    }
}
