public import Hiredis

/// A counting semaphore on a Redis list: `signal` is `LPUSH`, `wait` is `BRPOP`.
///
/// ```swift
/// let arrived = try ClassicSemaphore("a-arrived", redis: redis)
/// try await arrived.create(permits: 0)
/// try await arrived.signal()                       // on one machine
/// try await arrived.wait(timeout: .seconds(5))     // on another
/// ```
///
/// The permits are the elements of the list `rdc:sem:NAME`, so a program in any language, or a person with redis-cli,
/// takes part with bare `LPUSH rdc:sem:NAME 1` and `BRPOP rdc:sem:NAME 0`.
///
/// **Guarantees**
/// - First come, first served among all waiters of all programs, by Redis's own rule for blocked clients.
/// - `signal(n)` is one command: all n permits are there at once, or none.
/// - `create(permits:)` takes effect once, however many programs call it.
/// - A wait that is cancelled or times out holds nothing and has taken nothing: the server is asked to end it, its reply
///   is read all the same, and a permit that came after all is given back at the end it came from, exactly once.
/// - A waiter whose connection breaks goes on waiting, on a new one and at the end of the queue, until its deadline.
///
/// **Limits**
/// - Each blocked waiter takes a connection of its own (`RedisConfiguration.maxLanes`).
/// - A permit belongs to nobody: it is lost when the process that took it dies before it signals, and when a connection
///   dies with the reply that carries it.
/// - `signal` that throws `.connectionLost` with `mayHaveRun` may have taken effect; sending it again may signal twice.
/// - Without the right to call `CLIENT UNBLOCK` waits are sent in slices (`RedisConfiguration.blockingSlice`): nothing is
///   lost, but cancelling takes up to a slice, timeouts are precise to about 0.1 s, and a waiter queues anew with
///   each slice.
/// - The data is as durable as the Redis: what a restart or a failover loses is gone.
///
/// When a process dies, what it was waiting for stays with the others, and what it had taken stays taken.
public struct ClassicSemaphore: Sendable {
    /// 1 to 512 bytes of UTF-8 without control characters or braces.
    public let name: String
    private let redis: any Redis
    private let keys: ClassicKeys

    /// - Throws: `.invalidArgument` for a name that is not allowed. Nothing is sent.
    public init(_ name: String, redis: any Redis) throws(RedisDCError) {
        try ResourceName.validate(name)
        self.name = name
        self.redis = redis
        keys = ClassicKeys(name)
    }

    // MARK: Create and destroy

    /// Most permits of one `create` or `signal`.
    public static let maxPermits = 1_000_000

    /// Puts the first permits there, once: later calls, by whomever, change nothing.
    ///
    /// - Parameter permits: 0 to 1,000,000.
    /// - Returns: whether this call created it.
    /// - Throws: `.conflict` when it was created with another number, `.invalidArgument`, and what every operation throws.
    @discardableResult
    public func create(permits: Int) async throws(RedisDCError) -> Bool {
        guard (0...Self.maxPermits).contains(permits) else {
            throw RedisDCError(.invalidArgument, "permits is \(permits), expected 0 to \(Self.maxPermits)")
        }
        let reply = try await run(Scripts.classicCreate, [keys.permits, keys.meta, keys.gone], [.integer(permits)])
        guard let parts = reply.array, parts.count == 2, let existing = parts[1].integer else {
            throw unexpected(reply)
        }
        if existing != permits {
            throw RedisDCError(
                .conflict, "semaphore \"\(name)\" was created with \(existing) permits, this call wants \(permits)")
        }
        return parts[0].integer == 1
    }

    /// Deletes the semaphore and wakes everyone who waits for it with `.destroyed`.
    ///
    /// Programs that wait with a bare `BRPOP` are not woken. For a minute a `wait` finds it destroyed, unless it is
    /// created anew.
    ///
    /// - Returns: whether there was one.
    @discardableResult
    public func destroy() async throws(RedisDCError) -> Bool {
        let reply = try await run(
            Scripts.classicDestroy, [keys.permits, keys.meta, keys.gone], [.integer(ClassicKeys.tombstoneMilliseconds)])
        return reply.integer == 1
    }

    // MARK: Signal

    /// Adds one permit, or hands it to the waiter that came first.
    public func signal() async throws(RedisDCError) { try await signal(1) }

    /// Adds `count` permits at once.
    ///
    /// - Parameter count: 1 to 1,000,000.
    /// - Throws: `.connectionLost`; with `mayHaveRun` it may have signalled.
    public func signal(_ count: Int) async throws(RedisDCError) {
        guard (1...Self.maxPermits).contains(count) else {
            throw RedisDCError(.invalidArgument, "count is \(count), expected 1 to \(Self.maxPermits)")
        }
        var command = RedisCommand("LPUSH", .string(keys.permits))
        command.arguments.append(contentsOf: repeatElement("1", count: count))
        do { _ = try await redis.send(command) } catch { throw RedisDCError(error, key: keys.permits) }
    }

    /// How many permits there are now. Others change it at any time.
    public var value: Int {
        get async throws(RedisDCError) {
            do {
                guard let value = try await redis.send("LLEN", .string(keys.permits)).integer else { return 0 }
                return value
            } catch { throw RedisDCError(error, key: keys.permits) }
        }
    }

    // MARK: Wait

    /// Takes a permit, waiting for it as long as it takes.
    ///
    /// - Throws: `.cancelled` (no permit was taken), `.destroyed`, `.stopped`, and what the server refuses.
    public func wait() async throws(RedisDCError) { try await wait(until: nil) }

    /// Takes a permit, waiting at most so long.
    ///
    /// - Parameter timeout: from 1 ms, precise to about a millisecond; 0 tries once without waiting.
    /// - Throws: `.timedOut` (no permit was taken), and what `wait()` throws.
    public func wait(timeout: Duration) async throws(RedisDCError) {
        guard timeout >= .zero else {
            throw RedisDCError(.invalidArgument, "timeout is \(timeout), expected 0 or more")
        }
        if timeout == .zero {
            guard try await tryWait() else { throw timedOut }
        } else {
            try await wait(until: .now + timeout)
        }
    }

    /// Takes a permit if there is one now.
    public func tryWait() async throws(RedisDCError) -> Bool {
        let giver = giveBack
        do {
            let reply = try await redis.send(["RPOP", .string(keys.permits)], timeout: nil) { late in
                // The caller has gone; a permit that was popped for it goes back.
                if let permit = late.bytes { Task { await giver.giveBack(permit) } }
            }
            return !reply.isNull
        } catch { throw RedisDCError(error, key: keys.permits) }
    }

    private func wait(until deadline: ContinuousClock.Instant?) async throws(RedisDCError) {
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
                // Wait on, over a new connection; the pause keeps a connection that always breaks from spinning.
                do { try await Task.sleep(for: .milliseconds(10)) } catch {
                    throw RedisDCError(.cancelled, "the task was cancelled")
                }
                continue
            }
            guard let reply else { throw timedOut }
            if case .array(let parts) = reply, parts.first == .bytes(keys.goneBytes) {
                await giver.undo(reply)
                throw RedisDCError(.destroyed, "semaphore \"\(name)\" has been destroyed")
            }
            return
        }
    }

    private var timedOut: RedisDCError {
        RedisDCError(.timedOut, "no permit of semaphore \"\(name)\" in time")
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
        RedisDCError(.serverError, "unexpected reply \(reply)")
    }
}
