// Mutual exclusion among nodes.
import Hiredis

/// A lock that at most one task of all nodes holds at a time.
///
/// ```swift
/// let mutex = try coordinator.mutex("orders")
/// try await mutex.withLock { lease in
///     try await storage.write(order, fence: lease.fence)
/// }
/// ```
///
/// **Guarantees**
/// - While ``Lease/isHeld`` is true, no other task holds the lock. When that is no longer certain
///   (heartbeats fail, Redis loses data, an operator releases the lock), the body is cancelled and
///   `withLock` throws `.lost`.
/// - First come, first served. Only its holder releases the lock.
/// - ``Lease/fence`` grows with every grant, so that a guarded resource can refuse a holder that
///   was paused and has not noticed that it lost the lock. docs/failure-model.md has a script with
///   which a Redis key does that.
/// - When the process dies, the lock is free after the session's TTL and one heartbeat of any other
///   process.
/// - The lock belongs to the task that runs the body, and not to child tasks or a `Task {}` made
///   there: they wait like any other task. A body that waits for such a child without a timeout
///   waits forever.
///
/// **Limits**
/// - No lock based on leases excludes a paused process by itself: between the last time it read
///   `isHeld` and its write, time may pass. Where that matters, use the fence.
/// - A failover of Redis can lose the last grants. Then two tasks may hold the lock for a moment;
///   their fences differ.
///
/// Where readers need not exclude each other use a ``ReadWriteLock``; for more than one holder at a
/// time a ``Semaphore``; for several locks at once
/// ``Coordinator/withLocks(_:timeout:_:)``.
public struct DistributedMutex: Sendable {
    let resource: Resource
    let engine: Engine
    let coordinator: Coordinator
    /// Whether a task that holds the mutex may lock it again.
    public let isReentrant: Bool

    /// The name of the mutex.
    public var name: String { resource.name }

    /// Runs `body` while holding the lock.
    ///
    /// `body` runs in the caller's isolation, so an actor's method can use the actor's state in it.
    /// It is cancelled when the caller is cancelled or the lock is lost, and a shutdown of the
    /// coordinator waits for it. With a reentrant mutex, a body of the same task that holds the
    /// lock already gets the same lease, with the same fence.
    ///
    /// - Parameters:
    ///   - timeout: how long to wait for the lock, from 1 ms; `nil` waits without limit, 0 tries
    ///     once.
    ///   - body: receives the lease.
    /// - Throws: what `body` throws, and what ``lock(timeout:)`` and ``Lease/release()`` throw.
    ///   `.invalidArgument` when this task holds the lock already and the mutex is not reentrant.
    public func withLock<Result>(
        timeout: Duration? = nil, _ body: (Lease) async throws -> Result
    ) async throws -> Result {
        if let outer = LeaseOwnership.lease(on: name, of: engine) {
            guard isReentrant else {
                throw RedisDCError(
                    .invalidArgument,
                    "cannot lock mutex \"\(name)\": this task holds it already and would wait for itself; "
                        + "make the mutex with isReentrant: true")
            }
            // The outermost body releases.
            try outer.check()
            return try await body(outer)
        }
        return try await lock(timeout: timeout).whileHeld(isOwnedByTask: true, body)
    }

    /// Acquires the lock until ``Lease/release()``.
    ///
    /// A reentrant mutex does not recognize this lease: only bodies of
    /// ``withLock(timeout:_:)`` are reentrant.
    ///
    /// - Parameter timeout: from 1 ms; 0 tries once, `nil` waits without limit.
    /// - Throws: `.timedOut`, `.cancelled` (in both cases nothing is held), `.stopped`, `.conflict`
    ///   (the name belongs to another kind of resource), `.destroyed`, `.invalidArgument`.
    public func lock(timeout: Duration? = nil) async throws(RedisDCError) -> Lease {
        try await engine.lease(request, timeout: timeout)
    }

    /// Acquires the lock if it is free now.
    ///
    /// - Returns: the lease, or `nil` when the lock is held.
    /// - Throws: what ``lock(timeout:)`` throws, except `.timedOut`.
    public func tryLock() async throws(RedisDCError) -> Lease? {
        guard let grant = try await engine.acquire(request, timeout: .zero) else { return nil }
        return Lease(grant, name: name, count: 1, engine: engine)
    }

    /// Takes the lock away from its holder, for operators. The holder's lease is lost, and the
    /// first waiter gets the lock.
    ///
    /// - Returns: whether the lock was held.
    /// - Throws: what ``Coordinator/forceRelease(_:holder:)`` throws.
    @discardableResult
    public func forceRelease() async throws(RedisDCError) -> Bool {
        try await coordinator.forceRelease(name) > 0
    }

    var request: AcquireRequest { AcquireRequest(resource: resource, mode: .lease) }
}
