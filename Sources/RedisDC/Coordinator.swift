// The entry point of the library: the process's sessions with Redis, and the functions that make handles of resources.
import CoordinationBase
import Foundation
public import Hiredis

#if ServiceLifecycleSupport
    public import ServiceLifecycle
#endif

/// The entry point: takes part in a namespace, and makes the handles of its semaphores, locks and
/// other primitives.
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
/// let services = ServiceGroup(
///     services: [redis, coordinator, server], gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
/// ```
///
/// **Sessions**
/// - A coordinator owns one session with Redis for each partition that it uses. A namespace has one
///   partition by default. A heartbeat every third of the TTL extends all leases of a session,
///   regardless of their number. When heartbeats fail, the process considers the session lost, by
///   its own clock and before Redis may grant its permits to another process: its leases are lost,
///   the bodies that hold them are cancelled, ``events()`` reports the loss, and a new session
///   begins.
/// - When the process dies, its session expires after the TTL, and a heartbeat of another process
///   then releases its leases. Its waiters are skipped once the session has expired.
/// - Waiting costs no connection: all wake-ups of the process arrive on the client's one
///   subscription connection. Wake-ups may be lost: the next heartbeat finds a grant whose wake-up was
///   lost, and without the subscription waiters fall back to polling
///   (``CoordinatorConfiguration/pollInterval``).
/// - A request whose reply is lost is sent again with the same number and takes effect once.
///
/// **Operations that wait**, such as ``Semaphore/wait(_:timeout:)`` and
/// ``DistributedMutex/lock(timeout:)``
/// - Without a timeout they wait through an outage of Redis, and also for ``run()``: after some seconds,
///   a minute, and then every ten minutes they log what they wait for and why. When the session is lost they queue
///   again in the next one, or throw `.lost`
///   (``CoordinatorConfiguration/failsWaitersOnLoss``). They also throw `.lost` when an operator
///   releases the claim before the caller has received it.
/// - A timeout is precise to about a millisecond. With 0 they do not queue, but they may wait for a
///   session for up to ``CoordinatorConfiguration/callTimeout``, and then throw `.notConnected`. A
///   negative timeout throws `.invalidArgument`.
/// - On cancellation and timeout they release their claim (the place in the queue, or the grant)
///   before they throw: see ``RedisDCError/Code/cancelled``.
///
/// **Operations that do not wait**, such as ``Semaphore/signal(_:)`` and ``Semaphore/destroy()``
/// - In a task that is cancelled already they throw `.cancelled` and send nothing. A later
///   cancellation has no effect.
/// - `callTimeout` limits the time until the request is sent. From then on the request is repeated
///   until Redis answers or the session is lost. If the session is lost, the operation throws
///   `.connectionLost` with `mayHaveRun`.
///
/// Operations of both kinds also throw `.outOfMemory`, `.wrongType`, `.notPermitted` or
/// `.serverError` when Redis refuses the request or the session, `.conflict` when the namespace has
/// another number of partitions, and `.stopped`.
public final class Coordinator: Sendable {
    /// The namespace of this coordinator's resources.
    public let namespace: String
    /// The settings that the coordinator was made with.
    public let configuration: CoordinatorConfiguration
    let keyspace: Namespace
    let redis: any Redis
    let clock: MonotonicClock
    private let engines: [Engine]
    private let cohorts = Cohorts()
    private let hub: EventHub
    private let service: ServiceRun
    private let partitionsAgree = Locked(false)

    /// Creates a coordinator. Its sessions begin with ``run()``; operations before that wait for
    /// it.
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
        settings.repairTime = configuration.repairTime
        settings.repairBytes = max(
            configuration.repairBytes / configuration.partitions, min(configuration.repairBytes, 1 << 20))
        let nodeDescription = Self.nodeDescription(configuration)
        let instruments = EngineInstruments(configuration.instruments)
        let service = ServiceRun("Coordinator")
        let eventLoopRedis = redis.onEventLoop()
        engines = (0..<configuration.partitions).map { partition in
            Engine(
                redis: eventLoopRedis, namespace: keyspace, partition: partition, settings: settings,
                usesWakeUps: configuration.usesWakeUps, durabilityTimeout: configuration.durabilityTimeout,
                nodeDescription: nodeDescription, clock: clock,
                instruments: instruments, service: service
            ) { events.notify($0, partition: partition) }
        }
        self.keyspace = keyspace
        self.service = service
        hub = events
    }

    private static func nodeDescription(_ configuration: CoordinatorConfiguration) -> String {
        let process = ProcessInfo.processInfo
        return "\(process.hostName) \(process.processIdentifier) \(configuration.nodeName ?? process.processName)"
    }

    // MARK: Run

    /// Keeps the sessions until the task is cancelled or a graceful shutdown begins. Call it once:
    /// a second call traps.
    ///
    /// When the shutdown begins, the coordinator stops accepting operations. Waiters throw
    /// `.stopped`, and all leases are lost with `.stopped`. The bodies of `withLock`, `withPermit`
    /// and similar functions are cancelled and awaited, for at most the TTL. Then the leases are
    /// released on the server. A release request that Redis does not answer times out after 2 s. What
    /// remains is released by another process: immediately when Redis has received the end of the
    /// session, otherwise after the session has expired.
    public func run() async {
        // The number of partitions is stored in the first partition. Its session starts only if that number equals
        // the configured one; the other sessions start after it.
        let started = hub.stream(partition: 0)
        let startEngines: @Sendable () async -> Void = { [engines] in
            await engines[0].allowStart()
            guard engines.count > 1 else { return }
            for await event in started {
                guard case .sessionStarted = event else { continue }
                for engine in engines.dropFirst() { await engine.allowStart() }
                return
            }
        }
        await service.run([startEngines])
        // In a separate task, because the current one may be cancelled.
        await Task { [self] in
            await withTaskGroup(of: Void.self) { group in
                for engine in engines { group.addTask { await engine.stop() } }
            }
        }.value
        hub.finish()
    }

    /// Returns the events of the coordinator's sessions from now on.
    ///
    /// There is one session for each partition in use, and each session reports its own events. A
    /// stream keeps the newest 64 unread events and drops older ones. It ends when ``run()`` does.
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
        try checkArgument("permits", permits, in: 0...Semaphore.maxPermits, cannot: "make semaphore \"\(name)\"")
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
        try semaphore(name, created: nil, nil)
    }

    private func semaphore(
        _ name: String, created permits: Int?, _ fairness: Fairness?
    ) throws(RedisDCError) -> Semaphore {
        try ResourceName.validate(name)
        let resource = Resource(name: name, kind: .semaphore, permits: permits, policy: fairness?.letter)
        return Semaphore(resource: resource, engine: engine(of: name), coordinator: self)
    }

    /// Returns a mutex that all nodes share.
    ///
    /// - Parameters:
    ///   - name: 1 to 512 bytes of UTF-8 without control characters or braces.
    ///   - isReentrant: whether a task that holds the mutex may lock it again.
    ///   - locality: whether all tasks of all processes wait in one queue, or the process acquires
    ///     the mutex for its tasks. Processes and calls with different values exclude each other.
    /// - Throws: `.invalidArgument`. Nothing is sent.
    public func mutex(
        _ name: String, isReentrant: Bool = false, locality: Locality = .strict
    ) throws(RedisDCError) -> DistributedMutex {
        try ResourceName.validate(name)
        try locality.validate(name)
        let (resource, engine) = (Resource(name: name, kind: .mutex, permits: 1), engine(of: name))
        return DistributedMutex(
            resource: resource, engine: engine, coordinator: self, isReentrant: isReentrant, locality: locality,
            cohort: cohorts.cohort(of: resource, locality, engine))
    }

    func engine(of name: String) -> Engine { engines[keyspace.partition(of: name)] }

    /// Runs a script that only reads.
    func snapshot(_ script: RedisScript, partition: Int, _ arguments: [RedisArgument]) async throws(RedisDCError)
        -> RESPValue
    {
        try await checkPartitions()
        let keys = EngineKeys(keyspace).scriptKeys(partition: partition)
        do { return try await redis.script(script, keys: keys, arguments: arguments) } catch {
            throw RedisDCError(error, key: keys[0])
        }
    }

    /// Throws unless the namespace has as many partitions as this coordinator. Redis refuses a
    /// session with another number of partitions, but a script that only reads needs no session and
    /// would read the wrong keys.
    private func checkPartitions() async throws(RedisDCError) {
        if partitionsAgree.withLock({ $0 }) { return }
        let state = EngineKeys(keyspace).state(partition: 0)
        let found: String?
        do { found = try await redis.send("HGET", .string(state), "partitions").string } catch {
            throw RedisDCError(error, key: state)
        }
        guard let found else { return }
        guard found == keyspace.layout else { throw keyspace.conflict(with: found) }
        partitionsAgree.withLock { $0 = true }
    }
}

#if ServiceLifecycleSupport
    /// A coordinator is a service: its ``run()`` ends with a graceful shutdown.
    extension Coordinator: Service {}
#endif

/// Creates a coordinator, runs it while `body` runs, and shuts it down.
///
/// The shutdown begins when `body` returns or throws, even if the task is cancelled.
/// ``Coordinator/run()`` describes its steps.
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
