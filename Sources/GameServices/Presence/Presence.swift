import CoordinationBase
public import Hiredis

#if ServiceLifecycleSupport
    public import ServiceLifecycle
#endif

/// Objects that exist as long as their owners are present, in buckets that all nodes share.
///
/// ```swift
/// try await withPresence(redis: redis) { presence in
///     let lobby = try presence.bucket("lobby")
///     let phone = try await lobby.connect(user: "alice", client: "phone")
///     try await lobby.put("player:alice", "ready", owner: phone, scope: .user, grace: .seconds(10))
///     for try await event in lobby.changes() {
///         switch event {
///         case .snapshot(let snapshot): show(snapshot.objects)
///         case .change(let change): show(change)
///         case .gap: break  // a snapshot follows
///         }
///     }
/// }
/// ```
///
/// A process that serves clients has a session in each bucket that it uses. An object belongs to a
/// connected client or to its user:
///
/// | event | objects of the client | objects of the user |
/// |---|---|---|
/// | the client disconnects | leave after their grace periods | stay while another client of the user is connected, else as left |
/// | it connects again in time, anywhere | stay, without a change | stay, without a change |
/// | its process dies or stops for longer than `ttl` | leave when the session expires | stay while another client of the user is connected, else as left |
/// | the process ends in order | leave after their grace periods | as for a client that disconnects |
///
/// **Guarantees**
/// - Each object leaves once, in the script that removes it, whichever process finds it due.
/// - A process whose session has expired cannot change or keep an object: Redis refuses it, and
///   ``PresenceBucket/losses()`` tells it so.
/// - Every operation takes effect once, however often it is repeated after lost replies, or it is
///   reported with `mayHaveRun`.
/// - Changes have consecutive versions. A subscriber receives all of them in order, or a gap and a
///   snapshot. This holds across failovers that lose data. Publications may be lost: the log replaces
///   a lost one within a heartbeat.
///
/// **Limits**
/// - An object that is due leaves when a process that has the bucket open looks: within one
///   heartbeat, usually within 20 ms. Without such a process it remains until the next one opens the
///   bucket. Two hours after the last process has closed it, Redis forgets the bucket.
/// - One heartbeat for each open bucket and process, whatever the number of clients and objects.
/// - After a failover that lost data, objects put in the lost time are missing until their owners
///   put them again, as ``PresenceLoss`` asks them to.
public final class Presence: Sendable {
    private struct Registry {
        var cores: [ByteName: BucketCore] = [:]
        var isStopped = false
    }

    /// The namespace that contains the buckets.
    public let namespace: String
    /// The settings.
    public let configuration: PresenceConfiguration
    let redis: any Redis
    let instruments: PresenceInstruments
    let clock: MonotonicClock
    private let registry = Locked(Registry())
    private let opened = AsyncStream.makeStream(of: BucketCore.self)
    private let service = ServiceRun("Presence")

    /// Creates presence. Nothing is sent.
    ///
    /// - Parameters:
    ///   - redis: the client, which must be running.
    ///   - namespace: separates this application's buckets from those of others in the same Redis:
    ///     1 to 512 bytes of UTF-8 without control characters, braces and colons.
    ///   - configuration: the settings.
    /// - Throws: `.invalidArgument`.
    public convenience init(
        redis: any Redis, namespace: String = "default", configuration: PresenceConfiguration = .init()
    ) throws(GameServiceError) {
        try self.init(redis: redis, namespace: namespace, configuration: configuration, clock: .continuous())
    }

    init(
        redis: any Redis, namespace: String, configuration: PresenceConfiguration, clock: MonotonicClock
    ) throws(GameServiceError) {
        try PresenceKeys.validate(namespace, "namespace", maxBytes: 512)
        guard !namespace.utf8.contains(UInt8(ascii: ":")) else {
            throw GameServiceError(.invalidArgument, "a namespace has no colon, this one is \"\(namespace)\"")
        }
        try configuration.validate()
        self.redis = redis
        self.namespace = namespace
        self.configuration = configuration
        self.clock = clock
        instruments = PresenceInstruments(configuration.instruments)
    }

    /// Renews the sessions of this process and ends what is due, until the task is cancelled or a
    /// graceful shutdown begins. Then it ends the sessions in order: the grace periods of their
    /// clients begin. Call it once: a second call traps.
    ///
    /// Without it, the objects of this process leave when its sessions expire. After it, all
    /// operations throw `.stopped`, and all sequences end with it.
    public func run() async {
        await service.run([runBuckets])
        let cores = registry.withLock {
            $0.isStopped = true
            return Array($0.cores.values)
        }
        opened.continuation.finish()
        // In a separate task, because the current one may be cancelled.
        await Task {
            await withTaskGroup(of: Void.self) { group in
                for core in cores { group.addTask { await core.stop() } }
            }
        }.value
    }

    private func runBuckets() async {
        await withDiscardingTaskGroup { group in
            for await core in opened.stream { group.addTask { await core.run() } }
        }
    }

    /// Returns a bucket, whether it has objects or not. Nothing is sent.
    ///
    /// - Parameter name: 1 to 256 bytes of UTF-8 without control characters and braces.
    /// - Throws: `.invalidArgument`.
    public func bucket(_ name: String) throws(GameServiceError) -> PresenceBucket {
        try PresenceKeys.validate(name, "bucket name")
        return PresenceBucket(name: name, presence: self, keys: PresenceKeys(namespace: namespace, bucket: name))
    }

    /// Returns what this process has of a bucket, and opens it if it is not open.
    ///
    /// - Throws: `.stopped`.
    func core(_ bucket: PresenceBucket) throws(GameServiceError) -> BucketCore {
        let name = ByteName(bucket.name)
        let core: BucketCore? = registry.withLock { registry in
            if let core = registry.cores[name] { return core }
            if registry.isStopped { return nil }
            let core = BucketCore(
                keys: bucket.keys, redis: redis, configuration: configuration, clock: clock, instruments: instruments
            ) { [weak self] in self?.remove($0, name) }
            registry.cores[name] = core
            instruments.buckets(registry.cores.count)
            opened.continuation.yield(core)
            return core
        }
        guard let core else { throw .hasStopped }
        return core
    }

    private func remove(_ core: BucketCore, _ name: ByteName) {
        registry.withLock { registry in
            guard registry.cores[name] === core else { return }
            registry.cores[name] = nil
            instruments.buckets(registry.cores.count)
        }
    }
}

#if ServiceLifecycleSupport
    /// Presence is a service: its ``run()`` ends with a graceful shutdown.
    extension Presence: Service {}
#endif

/// Creates presence and runs it while `body` runs; afterwards it ends the sessions in order.
///
/// - Parameters:
///   - redis: the client. It must run for as long as `body` does.
///   - namespace: see ``Presence/init(redis:namespace:configuration:)``.
///   - configuration: see ``PresenceConfiguration``.
///   - body: receives presence, which must not be used after it returns.
/// - Throws: `.invalidArgument`, and what `body` throws.
@discardableResult
public func withPresence<Result>(
    redis: any Redis, namespace: String = "default", configuration: PresenceConfiguration = .init(),
    _ body: (Presence) async throws -> Result
) async throws -> Result {
    let presence = try Presence(redis: redis, namespace: namespace, configuration: configuration)
    return try await whileRunning({ await presence.run() }, { try await body(presence) })
}
