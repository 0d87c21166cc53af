// The default semaphore: permits kept by the engine, safe through crashes, cancels, retries and lost replies.
import Hiredis

/// A counting semaphore that nodes share.
///
/// ```swift
/// let seats = try coordinator.semaphore("seats", permits: 4)
/// try await seats.withPermit { _ in try await play() }  // comes back, also when the process dies
///
/// let arrived = try coordinator.semaphore("arrived", permits: 0)
/// try await arrived.signal()                        // on one machine
/// try await arrived.wait(timeout: .seconds(5))      // on another: the permit is gone with the taking
/// ```
///
/// There are two ways to take. `withPermit` **leases**: the permit comes back at the end of the body, when the session is
/// lost, or when the process dies. `wait` **consumes**: the permit is gone until someone signals.
///
/// **Guarantees**
/// - Free, held and not yet confirmed permits are always as many as were made and signalled, less those consumed.
/// - First come, first served, whatever the numbers: a wait for many is not overtaken by waits for few.
/// - `wait(n)` takes all or nothing, `signal(n)` gives all at once.
/// - A wait that is cancelled or times out holds nothing and has taken nothing.
/// - Sending again after a lost reply has one effect.
/// - A consumed permit whose process dies before it has confirmed the receipt (milliseconds) goes back.
///
/// **Limits**
/// - A consumed permit belongs to nobody: what its taker does not signal is gone.
/// - It is as durable as the Redis. When Redis loses data, holders are told (``CoordinatorEvent/dataLost``, `.lost`).
///
/// ``ClassicSemaphore`` is the plain Redis idiom: other programs take part with `LPUSH` and `BRPOP`, and nothing more.
public struct Semaphore: Sendable {
    /// Most permits of one semaphore when it is made, and of one operation.
    public static let maxPermits = 1_000_000

    let resource: Resource
    let engine: Engine
    let coordinator: Coordinator

    public var name: String { resource.name }

    // MARK: Lease

    /// Runs `body` with a permit, which comes back at its end.
    ///
    /// When the permit is lost before, `body` is cancelled and `.lost` is thrown.
    ///
    /// - Parameter timeout: how long to wait for the permit; `nil` as long as it takes, 0 tries once.
    /// - Throws: what `body` throws, and what ``acquire(_:timeout:)`` and ``Lease/release()`` throw.
    public func withPermit<Result: Sendable>(
        timeout: Duration? = nil, _ body: @escaping @Sendable (Lease) async throws -> Result
    ) async throws -> Result {
        try await withPermits(1, timeout: timeout, body)
    }

    /// Runs `body` with `count` permits, taken all at once.
    public func withPermits<Result: Sendable>(
        _ count: Int, timeout: Duration? = nil, _ body: @escaping @Sendable (Lease) async throws -> Result
    ) async throws -> Result {
        try await engine.holding(try await acquire(count, timeout: timeout), body)
    }

    /// Leases `count` permits until ``Lease/release()``.
    ///
    /// - Parameters:
    ///   - count: 1 to what the semaphore is made with.
    ///   - timeout: from 1 ms; 0 tries once, `nil` waits as long as it takes.
    /// - Throws: `.timedOut`, `.cancelled`, `.destroyed`, `.conflict`, `.notFound`, `.stopped`, `.invalidArgument`, and what
    ///   the server refuses.
    public func acquire(_ count: Int = 1, timeout: Duration? = nil) async throws(RedisDCError) -> Lease {
        if let permits = resource.permits, count > permits {
            throw RedisDCError(
                .invalidArgument, "count is \(count), but the semaphore has \(permits) permits: it would wait for ever")
        }
        let operation = try operation(count, .lease, timeout)
        try await engine.obtain(operation)
        guard let grant = try operation.grant() else { throw operation.notAvailable }
        return Lease(grant, name: name, count: count, engine: engine)
    }

    // MARK: Consume

    /// Takes a permit for good, waiting for it as long as it takes.
    public func wait() async throws(RedisDCError) { try await engine.obtain(try operation(1, .consume, nil)) }

    /// Takes a permit for good, waiting at most so long.
    ///
    /// - Parameter timeout: from 1 ms, precise to about a millisecond; 0 tries once.
    /// - Throws: `.timedOut`, and what ``acquire(_:timeout:)`` throws. Then nothing was taken.
    public func wait(timeout: Duration) async throws(RedisDCError) {
        try await engine.obtain(try operation(1, .consume, timeout))
    }

    /// Takes `count` permits for good, all at once.
    ///
    /// - Parameter count: 1 to 1,000,000.
    public func wait(_ count: Int, timeout: Duration? = nil) async throws(RedisDCError) {
        try await engine.obtain(try operation(count, .consume, timeout))
    }

    /// Takes `count` permits for good if they are there now.
    public func tryWait(_ count: Int = 1) async throws(RedisDCError) -> Bool {
        let operation = try operation(count, .consume, .zero)
        await engine.carryOutAcquire(operation)
        return try operation.isGranted()
    }

    /// Apart, so that what it takes to make it is not in the frames of those who wait.
    @inline(never)
    private func operation(_ count: Int, _ mode: AcquireRequest.Mode, _ timeout: Duration?) throws(RedisDCError)
        -> EngineOperation
    {
        try Self.check(count)
        return try engine.operation(
            AcquireRequest(resource: resource, count: count, mode: mode), timeout: timeout)
    }

    // MARK: Signal

    /// Adds permits, for those who wait or will.
    ///
    /// - Parameter count: 1 to 1,000,000. They are there all at once.
    /// - Throws: `.connectionLost` with `mayHaveRun` when the session was lost while it was under way.
    public func signal(_ count: Int = 1) async throws(RedisDCError) {
        try Self.check(count)
        _ = try await engine.call(.signal(resource, count: count))
    }

    /// How many permits there are to be had now. Others change it at any time; below zero after shrinking.
    public var value: Int {
        get async throws(RedisDCError) {
            guard let inspection = try await coordinator.inspect(name, limit: 1) else {
                if let permits = resource.permits { return permits }
                throw RedisDCError(.notFound, "there is no semaphore \"\(name)\"")
            }
            guard inspection.kind == "semaphore" else {
                throw RedisDCError(.conflict, "\"\(name)\" is a \(inspection.kind), not a semaphore")
            }
            return inspection.available
        }
    }

    // MARK: Create, resize, destroy

    /// Makes it now, instead of with the first use.
    ///
    /// - Returns: whether this call made it.
    /// - Throws: `.conflict` when it is there with another number of permits or another fairness.
    @discardableResult
    public func create() async throws(RedisDCError) -> Bool {
        guard resource.permits != nil else {
            throw RedisDCError(.invalidArgument, "creating \"\(name)\" takes a number of permits")
        }
        return try await engine.call(.create(resource)) == 1
    }

    /// Changes how many permits there are in all. What is taken stays taken, so `value` may fall below zero for a while.
    ///
    /// Handles made with the former number go on working; ``acquire(_:timeout:)`` takes no more than that number at once
    /// through them.
    public func resize(to permits: Int) async throws(RedisDCError) {
        guard (0...Self.maxPermits).contains(permits) else {
            throw RedisDCError(.invalidArgument, "permits is \(permits), expected 0 to \(Self.maxPermits)")
        }
        _ = try await engine.call(.resize(resource, permits: permits))
    }

    /// Deletes it, and wakes everyone who waits for it with `.destroyed`. Leases go on until they are released.
    ///
    /// - Returns: whether there was one.
    /// - Throws: `.conflict` when the name is a mutex's.
    @discardableResult
    public func destroy() async throws(RedisDCError) -> Bool {
        try await engine.call(.destroy(resource)) == 1
    }

    private static func check(_ count: Int) throws(RedisDCError) {
        guard (1...maxPermits).contains(count) else {
            throw RedisDCError(.invalidArgument, "count is \(count), expected 1 to \(maxPermits)")
        }
    }
}
