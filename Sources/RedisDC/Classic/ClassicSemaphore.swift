public import Hiredis

/// A counting semaphore on a Redis list, which other programs share: `signal` is `LPUSH`, `wait` is
/// `BRPOP`.
///
/// ```swift
/// let arrived = try ClassicSemaphore("a-arrived", redis: redis)
/// try await arrived.create(permits: 0)
/// try await arrived.signal()                       // on one machine
/// try await arrived.wait(timeout: .seconds(5))     // on another
/// ```
///
/// The permits are the elements of the list `rdc:sem:NAME`, so a program in any language, or a
/// person with redis-cli, signals with `LPUSH rdc:sem:NAME 1` and waits with `BRPOP rdc:sem:NAME
/// 0`. In a namespace, the list is `rdc:{NAMESPACE:sem:NAME}`.
///
/// **Guarantees**
/// - First come, first served among all waiters of all programs, by Redis's own rule for blocked
///   clients.
/// - `signal(n)` is one command: it adds all n permits atomically.
/// - `create(permits:)` takes effect once, however many programs call it.
/// - A wait that is cancelled or times out has taken nothing: the server is asked to end it, its
///   reply is still read, and a permit that arrived nevertheless is returned to the end of the list
///   that it came from, exactly once.
/// - A waiter whose connection breaks goes on waiting, over a new connection and at the end of the
///   queue, until its deadline.
///
/// **Limits**
/// - Each blocked waiter uses a connection of its own (`RedisConfiguration.maxLanes`).
/// - A permit has no owner: it is lost when the process that took it dies before it signals, and
///   when a connection dies with the reply that carries it.
/// - `signal` that throws `.connectionLost` with `mayHaveRun` may have taken effect; sending it
///   again may signal twice.
/// - Without the right to call `CLIENT UNBLOCK` a wait is sent in slices
///   (`RedisConfiguration.blockingSlice`): no permit is lost, but cancelling takes up to a slice,
///   timeouts are precise to about 0.1 s, and the waiter moves to the end of the queue with each
///   slice.
/// - The permits are as durable as the Redis server's data: what a restart or a failover loses is
///   gone.
///
/// When a process dies, its waits take nothing, and the permits that it had taken stay taken.
///
/// A ``Semaphore`` survives crashes and lost replies, and its waits need no connection of their
/// own.
public struct ClassicSemaphore: Sendable {
    /// The name of the semaphore.
    public let name: String
    /// The namespace of the semaphore; `nil` if it has none.
    public let namespace: String?
    private let redis: any Redis
    private let keys: ClassicKeys

    /// Creates a handle of a semaphore.
    ///
    /// - Parameters:
    ///   - name: 1 to 512 bytes of UTF-8 without control characters or braces.
    ///   - redis: the client.
    ///   - namespace: separates this application's semaphores from those of others in the same
    ///     Redis: 1 to 512 bytes of UTF-8 without control characters, braces or colons. `nil`, the
    ///     default, is for the semaphores that all programs share. A ``Coordinator`` may use the same
    ///     namespace.
    /// - Throws: `.invalidArgument`. Nothing is sent.
    public init(_ name: String, redis: any Redis, namespace: String? = nil) throws(RedisDCError) {
        try ResourceName.validate(name)
        if let namespace { try ResourceName.validate(namespace: namespace) }
        self.name = name
        self.namespace = namespace
        self.redis = redis
        keys = ClassicKeys(name, namespace: namespace)
    }

    // MARK: Create and destroy

    /// The maximum number of permits of one `create`.
    public static let maxPermits = 1_000_000
    /// The maximum number of permits of one `signal`, which is a single command: the server serves
    /// nobody else meanwhile.
    public static let maxSignal = 20_000

    /// Creates the semaphore with its first permits. Later calls by any program change nothing.
    ///
    /// More than 10,000 permits are added in steps, between which the server serves others. A call
    /// returns when the last ones are added, also one that finds a semaphore whose creator has died
    /// on the way: it adds the rest.
    ///
    /// - Parameter permits: 0 to 1,000,000.
    /// - Returns: whether this call created it.
    /// - Throws: `.conflict` when it was created with another number, `.invalidArgument`,
    ///   `.cancelled`, `.connectionLost` (calling again is safe), `.notConnected`, `.wrongType`,
    ///   `.stopped`, and what the server refuses.
    @discardableResult
    public func create(permits: Int) async throws(RedisDCError) -> Bool {
        try checkArgument("permits", permits, in: 0...Self.maxPermits, cannot: "create semaphore \"\(name)\"")
        var (isNew, existing, missing) = try await createStep(permits)
        if existing != permits {
            throw RedisDCError(
                .conflict,
                "cannot create semaphore \"\(name)\" with \(permits) permits: it was created with \(existing) permits")
        }
        while missing > 0 { (_, _, missing) = try await createStep(permits, isFurther: true) }
        return isNew
    }

    private func createStep(
        _ permits: Int, isFurther: Bool = false
    ) async throws(RedisDCError) -> (isNew: Bool, permits: Int, missing: Int) {
        let reply = try await run(
            Scripts.classicCreate, [keys.permits, keys.meta, keys.gone],
            [.integer(permits)] + (isFurther ? ["1"] : []))
        guard let parts = reply.array, parts.count == 3, let existing = parts[1].integer,
            let missing = parts[2].integer
        else { throw unexpected(reply) }
        return (parts[0].integer == 1, existing, missing)
    }

    /// Deletes the semaphore. All waiters throw `.destroyed`.
    ///
    /// Programs that wait with a bare `BRPOP` are not woken. For a minute later waits throw
    /// `.destroyed` too, unless the semaphore is created again.
    ///
    /// - Returns: whether there was one.
    /// - Throws: what ``create(permits:)`` throws, except `.conflict`.
    @discardableResult
    public func destroy() async throws(RedisDCError) -> Bool {
        let reply = try await run(
            Scripts.classicDestroy, [keys.permits, keys.meta, keys.gone], [.integer(ClassicKeys.tombstoneMilliseconds)])
        return reply.integer == 1
    }

    // MARK: Signal

    /// Adds one permit, or passes it to the first waiter.
    ///
    /// - Throws: what ``signal(_:)`` throws.
    public func signal() async throws(RedisDCError) { try await signal(1) }

    /// Adds `count` permits atomically.
    ///
    /// - Parameter count: 1 to 20,000.
    /// - Throws: `.connectionLost` (with `mayHaveRun` the permits may have been added),
    ///   `.cancelled` (likewise), `.invalidArgument`, `.notConnected`, `.wrongType`, `.stopped`,
    ///   and what the server refuses.
    public func signal(_ count: Int) async throws(RedisDCError) {
        try checkArgument("count", count, in: 1...Self.maxSignal, cannot: "signal semaphore \"\(name)\"")
        var command = RedisCommand("LPUSH", .string(keys.permits))
        command.arguments.append(contentsOf: repeatElement("1", count: count))
        do { _ = try await redis.send(command) } catch { throw RedisDCError(error, key: keys.permits) }
    }

    /// The number of permits now. Others change it at any time.
    ///
    /// - Throws: `.connectionLost`, `.notConnected`, `.cancelled`, `.wrongType`, `.stopped`.
    public var value: Int {
        get async throws(RedisDCError) {
            do {
                guard let value = try await redis.send("LLEN", .string(keys.permits)).integer else { return 0 }
                return value
            } catch { throw RedisDCError(error, key: keys.permits) }
        }
    }

    // MARK: Wait

    /// Takes a permit, and waits without limit until there is one.
    ///
    /// - Throws: `.cancelled` (no permit was taken), `.destroyed`, `.notConnected`, `.wrongType`,
    ///   `.stopped`, and what the server refuses.
    public func wait() async throws(RedisDCError) { try await wait(nil, until: nil) }

    /// Takes a permit, and waits for it until the timeout.
    ///
    /// - Parameter timeout: precise to about a millisecond; 0 tries once.
    /// - Throws: `.timedOut` (no permit was taken), `.invalidArgument` (the timeout is negative),
    ///   and what ``wait()`` throws.
    public func wait(timeout: Duration) async throws(RedisDCError) {
        guard timeout >= .zero else {
            throw RedisDCError(
                .invalidArgument,
                "cannot wait for semaphore \"\(name)\": timeout is \(timeout), expected 0 or more")
        }
        if timeout == .zero {
            guard try await tryWait() else { throw timedOut(timeout) }
        } else {
            try await wait(timeout, until: .now + timeout)
        }
    }

    /// Takes a permit if there is one now.
    ///
    /// - Returns: whether a permit was taken.
    /// - Throws: what ``wait()`` throws, except `.destroyed`; `.connectionLost` with `mayHaveRun`
    ///   when a permit may have been taken and lost.
    public func tryWait() async throws(RedisDCError) -> Bool {
        let giver = giveBack
        do {
            let reply = try await redis.send(["RPOP", .string(keys.permits)], timeout: nil) { late in
                // The caller was cancelled: a permit that was popped for it is returned.
                if let permit = late.bytes { Task { await giver.giveBack(permit) } }
            }
            return !reply.isNull
        } catch { throw RedisDCError(error, key: keys.permits) }
    }

    private func wait(_ timeout: Duration?, until deadline: ContinuousClock.Instant?) async throws(RedisDCError) {
        while true {
            let left = deadline.map { max(.zero, $0 - .now) }
            let giver = giveBack
            let reply: RESPValue?
            do throws(RedisError) {
                reply = try await redis.block(.brpop(keys.permits, keys.gone), timeout: left) { late in
                    await giver.undo(late)
                }
            } catch {
                guard error.code == .connectionLost || error.code == .serverNotReady else {
                    throw RedisDCError(error, key: keys.permits)
                }
                // Go on over a new connection. The pause keeps a connection that always breaks from spinning.
                do { try await Task.sleep(for: .milliseconds(10)) } catch {
                    throw RedisDCError(.cancelled, "cannot wait for semaphore \"\(name)\": the task was cancelled")
                }
                continue
            }
            guard let reply else { throw timedOut(timeout) }
            if case .array(let parts) = reply, parts.first == .bytes(keys.goneBytes) {
                await giver.undo(reply)
                throw RedisDCError(.destroyed, "cannot wait for semaphore \"\(name)\": it was destroyed")
            }
            return
        }
    }

    private func timedOut(_ timeout: Duration?) -> RedisDCError {
        let error = RedisDCError.timedOut("take a permit of semaphore \"\(name)\"", after: timeout)
        return error.explained(by: .noConnection((redis as? any EventLoopRedis)?.connectionFailure))
    }

    private var giveBack: ClassicGiveBack { ClassicGiveBack(redis: redis, keys: keys) }

    private func run(
        _ script: RedisScript, _ keys: [String], _ arguments: [RedisArgument]
    ) async throws(RedisDCError) -> RESPValue {
        do { return try await redis.script(script, keys: keys, arguments: arguments) } catch {
            throw RedisDCError(error, key: self.keys.permits)
        }
    }

    private func unexpected(_ reply: RESPValue) -> RedisDCError {
        RedisDCError(.serverError, "unexpected reply: \(reply.form)")
    }
}

extension Scripts {
    static let classicCreate = RedisScript(embedded: PackageResources.classic_create_lua)
    static let classicDestroy = RedisScript(embedded: PackageResources.classic_destroy_lua)
}
