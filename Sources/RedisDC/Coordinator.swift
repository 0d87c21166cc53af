// The process's part in coordinating with others: its session with Redis, and the handles of resources.
import CoordinationBase
import Foundation
public import Hiredis

#if ServiceLifecycleSupport
    public import ServiceLifecycle
#endif

/// Coordinates this process with others through Redis.
///
/// ```swift
/// try await withCoordinator(redis: redis) { coordinator in
///     let mutex = try coordinator.mutex("orders")
///     try await mutex.withLock { lease in … }
/// }
/// ```
///
/// In a server, make one coordinator and run it with the other services, after the client and
/// before the services that use it:
///
/// ```swift
/// let coordinator = try Coordinator(redis: redis)
/// let services = ServiceGroup(services: [redis, coordinator, server], logger: logger)
/// ```
///
/// - A coordinator owns a session with Redis. One heartbeat every third of the session's TTL keeps
///   everything that the process holds, however much that is. When heartbeats fail, the process
///   notices by its own clock before Redis may grant what it holds to another process: its leases
///   are lost, the bodies that hold them are cancelled, ``events()`` reports the loss, and a new
///   session begins.
/// - Waiting costs no connection: all wake-ups of the process arrive on the client's one
///   subscription connection. They are hints; without them everything works, only slower.
/// - An operation whose reply is lost is sent again under the same number and has one effect.
/// - When the process dies, what it holds is free after the TTL and one heartbeat of any other
///   process, and its waiters are passed over, immediately or at the same time.
public final class Coordinator: Sendable {
    /// The namespace of this coordinator's resources.
    public let namespace: String
    /// The settings that the coordinator was made with.
    public let configuration: CoordinatorConfiguration
    let keyspace: Namespace
    let redis: any Redis
    let clock: MonotonicClock
    private let engines: [Engine]
    private let hub: EventHub
    private let service = ServiceRun("Coordinator")
    private let partitionsAgree = Locked(false)

    /// Creates a coordinator. Its session begins with ``run()``; operations before that wait for it.
    ///
    /// - Parameters:
    ///   - redis: the client. It must run for as long as the coordinator does.
    ///   - namespace: separates this application's resources from those of others in the same
    ///     Redis: 1 to 512 bytes of UTF-8 without control characters, braces or colons.
    ///   - configuration: see ``CoordinatorConfiguration``.
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
        self.clock = clock
        let keyspace = Namespace(namespace, partitions: configuration.partitions)
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
                redis: eventLoopRedis, namespace: keyspace, partition: partition, settings: settings,
                usesWakeUps: configuration.usesWakeUps, info: info, clock: clock, instruments: instruments
            ) { events.notify($0, partition: partition) }
        }
        self.keyspace = keyspace
        hub = events
    }

    private static func info(_ configuration: CoordinatorConfiguration) -> String {
        let process = ProcessInfo.processInfo
        return "\(process.hostName) \(process.processIdentifier) \(configuration.nodeName ?? process.processName)"
    }

    // MARK: Run

    /// Keeps the session until the task is cancelled or a graceful shutdown begins. Call it once.
    ///
    /// A shutdown accepts no new work: waiters throw `.stopped`, the bodies of `withLock`,
    /// `withPermit` and their siblings are cancelled and awaited (for at most the TTL), and
    /// everything that is held is free immediately.
    public func run() async {
        // The first partition's record holds the number of partitions: the others start when it agrees with ours.
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
        // In a task of its own, because this one may be cancelled.
        await Task { [self] in
            await withTaskGroup(of: Void.self) { group in
                for engine in engines { group.addTask { await engine.stop() } }
            }
        }.value
        hub.finish()
    }

    /// Returns the events of the coordinator's sessions from now on.
    ///
    /// Each stream keeps the newest 64 events that were not read and drops older ones. It ends when
    /// ``run()`` does.
    public func events() -> AsyncStream<CoordinatorEvent> { hub.stream() }

    // MARK: Resources

    /// Returns a counting semaphore that all nodes share. The first operation creates it if it does
    /// not exist.
    ///
    /// - Parameters:
    ///   - name: 1 to 512 bytes of UTF-8 without control characters or braces.
    ///   - permits: the number of permits that the semaphore is created with, 0 to 1,000,000.
    ///   - fairness: the order in which waiters are served.
    /// - Throws: `.invalidArgument`. Nothing is sent: the first operation throws `.conflict` when
    ///   the semaphore exists with another number or another fairness.
    public func semaphore(
        _ name: String, permits: Int, fairness: Fairness = .fifo
    ) throws(RedisDCError) -> Semaphore {
        guard (0...Semaphore.maxPermits).contains(permits) else {
            throw RedisDCError(
                .invalidArgument,
                "cannot make semaphore \"\(name)\": permits is \(permits), expected 0 to \(Semaphore.maxPermits)")
        }
        return try semaphore(name, created: permits, fairness)
    }

    /// Returns a counting semaphore that another call must have created.
    ///
    /// Every operation throws `.notFound` when the semaphore does not exist, and never creates it.
    /// The number of permits and the fairness are those that it was created with.
    ///
    /// - Parameter name: 1 to 512 bytes of UTF-8 without control characters or braces.
    /// - Throws: `.invalidArgument`. Nothing is sent.
    public func existingSemaphore(_ name: String) throws(RedisDCError) -> Semaphore {
        try semaphore(name, created: nil, .fifo)
    }

    private func semaphore(
        _ name: String, created permits: Int?, _ fairness: Fairness
    ) throws(RedisDCError) -> Semaphore {
        try ResourceName.validate(name)
        let resource = Resource(
            name: name, kind: .semaphore, permits: permits, policy: fairness == .fifo ? "f" : "b")
        return Semaphore(resource: resource, engine: engine(of: name), coordinator: self)
    }

    /// Returns a mutex that all nodes share.
    ///
    /// - Parameters:
    ///   - name: 1 to 512 bytes of UTF-8 without control characters or braces.
    ///   - isReentrant: whether a task that holds the mutex may lock it again.
    /// - Throws: `.invalidArgument`. Nothing is sent.
    public func mutex(_ name: String, isReentrant: Bool = false) throws(RedisDCError) -> DistributedMutex {
        try ResourceName.validate(name)
        let resource = Resource(name: name, kind: .mutex, permits: 1)
        return DistributedMutex(
            resource: resource, engine: engine(of: name), coordinator: self, isReentrant: isReentrant)
    }

    func engine(of name: String) -> Engine { engines[keyspace.partition(of: name)] }

    /// Runs a script that only reads.
    func look(_ script: RedisScript, partition: Int, _ arguments: [RedisArgument]) async throws(RedisDCError)
        -> RESPValue
    {
        try await checkPartitions()
        let keys = EngineKeys(keyspace).scriptKeys(partition: partition)
        do { return try await redis.script(script, keys: keys, arguments: arguments) } catch {
            throw RedisDCError(error, key: keys[0])
        }
    }

    /// Throws unless the namespace has as many partitions as this coordinator. A session would have
    /// been refused, but reading needs none, and with another number of partitions it would read
    /// the wrong keys.
    private func checkPartitions() async throws(RedisDCError) {
        if partitionsAgree.withLock({ $0 }) { return }
        let state = EngineKeys(keyspace).state(partition: 0)
        let found: String?
        do { found = try await redis.send("HGET", .string(state), "partitions").string } catch {
            throw RedisDCError(error, key: state)
        }
        guard let found else { return }
        guard found == String(keyspace.partitions) else { throw keyspace.conflict(with: found) }
        partitionsAgree.withLock { $0 = true }
    }
}

#if ServiceLifecycleSupport
    /// A coordinator is a service: its ``run()`` ends with a graceful shutdown.
    extension Coordinator: Service {}
#endif

/// Creates a coordinator, runs it while `body` runs, and ends its session.
///
/// The session ends when `body` returns or throws, also in a cancelled task; everything that is
/// held is free then.
///
/// - Parameters:
///   - redis: the client. It must run for as long as `body` does.
///   - namespace: see ``Coordinator/init(redis:namespace:configuration:)``.
///   - configuration: see ``CoordinatorConfiguration``.
///   - body: receives the coordinator, which must not be used after it returns.
/// - Throws: `.invalidArgument`, and what `body` throws.
@discardableResult
public func withCoordinator<Result>(
    redis: any Redis, namespace: String = "default", configuration: CoordinatorConfiguration = .init(),
    _ body: (Coordinator) async throws -> Result
) async throws -> Result {
    let coordinator = try Coordinator(redis: redis, namespace: namespace, configuration: configuration)
    return try await whileRunning({ await coordinator.run() }, { try await body(coordinator) })
}
