// A condition variable: waiting, while holding a mutex, for a change of what the mutex protects.
import CoordinationBase
import Hiredis

/// A condition variable of a ``DistributedMutex``: waits for a change of what the mutex protects.
///
/// ```swift
/// let mutex = try coordinator.mutex("stock")
/// let arrived = try mutex.condition("arrived")
///
/// try await mutex.withLock { lease in               // one task waits
///     while await stock.isEmpty { try await arrived.wait(lease) }
///     await stock.take()
/// }
/// try await mutex.withLock { _ in                   // another task notifies
///     await stock.add(item)
///     try await arrived.notify()
/// }
/// ```
///
/// **Guarantees**
/// - The mutex is released only after the waiter has its place in the queue, so that no later
///   `notify` is missed.
/// - However a wait ends (notified, timed out, cancelled), the mutex is held again when it returns
///   or throws. The lease has a new ``Lease/fence``, unless the wait ended before the mutex was
///   released. If the mutex cannot be acquired again, the lease is lost and its body is cancelled.
/// - A `notify` is for the tasks that wait at that time, first come, first served. A notification
///   for a task that gave up, or whose process died before it received it, goes to the next. None
///   is kept for tasks that wait later.
///
/// **Limits**
/// - Check the predicate again after each wait: another task may have held the mutex in between,
///   and spurious wakeups are possible.
///
/// A ``Semaphore`` keeps its signals for later waiters; a ``Latch`` stays open.
public struct Condition: Sendable {
    let resource: Resource
    let mutex: DistributedMutex

    /// The mutex's name, `#`, and the condition's own name.
    public var name: String { resource.name }

    /// Releases the mutex, waits to be notified, and acquires the mutex again.
    ///
    /// - Parameters:
    ///   - lease: the lease of the mutex. ``Lease/isHeld`` is false until this call returns or
    ///     throws.
    ///   - timeout: how long to wait for a notification; `nil` waits without limit, 0 throws
    ///     `.timedOut` without releasing the mutex. It does not limit how long it takes to acquire
    ///     the mutex again, and neither does cancellation.
    /// - Throws: `.timedOut`, `.cancelled`, `.lost` (the session ended, and a notification may have
    ///   been missed): in these cases too the mutex is held again. If it cannot be acquired again,
    ///   the lease is lost, and the error of that attempt is thrown instead; likewise if the lease
    ///   was lost before the wait began in Redis. `.invalidArgument`
    ///   when the lease is of another mutex, and what ``DistributedMutex/lock(timeout:)`` throws.
    public func wait(_ lease: Lease, timeout: Duration? = nil) async throws(RedisDCError) {
        let engine = mutex.engine
        guard ByteName(lease.name) == ByteName(mutex.name), lease.engine === engine else {
            throw RedisDCError(
                .invalidArgument,
                "cannot wait for condition \"\(name)\" with a lease of \"\(lease.name)\": "
                    + "pass the lease of mutex \"\(mutex.name)\"")
        }
        try lease.check()
        let claim = try lease.ownClaim()
        let request = Acquire(resource: resource, failsOnLoss: true, detail: .releases(claim))
        lease.suspend()
        let outcome: Result<Bool, RedisDCError>
        do { outcome = .success(try await engine.acquire(request, timeout: timeout) != nil) } catch {
            outcome = .failure(error)
        }
        try await reacquire(lease, claim)
        guard try outcome.get() else { throw .timedOut("wait for condition \"\(name)\"", after: timeout) }
    }

    private func reacquire(_ lease: Lease, _ claim: UInt64) async throws(RedisDCError) {
        let engine = mutex.engine
        if await engine.holds(claim) {
            lease.replaceGrant(nil)
            return
        }
        // In a task of its own, because this one may be cancelled.
        let request = mutex.request
        let again = await Task { () -> Result<EngineStateMachine.Grant?, RedisDCError> in
            do { return .success(try await engine.acquire(request, timeout: nil)) } catch {
                return .failure(error as? RedisDCError ?? RedisDCError(.lost, "\(error)"))
            }
        }.value
        do { lease.replaceGrant(try again.get()) } catch {
            lease.fail(error)
            throw error
        }
        if let loss = lease.loss { throw loss }
    }

    /// Wakes the tasks that have waited longest.
    ///
    /// The caller need not hold the mutex.
    ///
    /// - Parameter count: the maximum number of tasks to wake, 1 to 1,000,000.
    /// - Throws: `.connectionLost` with `mayHaveRun` when the session was lost while the request
    ///   was in flight, `.notConnected`, `.conflict`, `.cancelled`, `.invalidArgument`, and what
    ///   ``Coordinator`` lists for all operations.
    public func notify(_ count: Int = 1) async throws(RedisDCError) {
        try checkArgument("count", count, in: 1...Semaphore.maxPermits, cannot: "notify condition \"\(name)\"")
        try await mutex.engine.call(Signal(resource, count: count))
    }

    /// Wakes all tasks that wait now.
    ///
    /// - Throws: what ``notify(_:)`` throws.
    public func notifyAll() async throws(RedisDCError) { try await notify(Semaphore.maxPermits) }
}

extension DistributedMutex {
    /// Returns a condition of this mutex. A mutex can have several, with different names.
    ///
    /// - Parameter name: with the mutex's name and a `#` at most 512 bytes of UTF-8, without
    ///   control characters or braces.
    /// - Throws: `.invalidArgument`. Nothing is sent.
    public func condition(_ name: String) throws(RedisDCError) -> Condition {
        let full = "\(self.name)#\(name)"
        try ResourceName.validate(full)
        return Condition(resource: Resource(name: full, kind: .condition, permits: 0), mutex: self)
    }
}
