// A lock for all nodes, held through a lease with a fencing token.
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
/// - While ``Lease/isHeld`` is true, no other task holds the lock, however slow the process or the
///   network is; the limits below name the exceptions. When heartbeats fail, Redis loses data or an
///   operator releases the lock, the body is cancelled and `withLock` throws `.lost`.
/// - First come, first served, unless ``Locality/cohort(limit:linger:)`` says otherwise. Only its holder, an operator (``forceRelease()``) and the end of the
///   holder's session release the lock.
/// - A wait that is cancelled or times out holds nothing when it throws. Only when Redis does not
///   answer within 250 ms does it throw while its claim may still exist; the release then continues
///   in the background.
/// - ``Lease/fence`` grows with every grant, so that a protected resource can refuse a holder that
///   was paused and has not noticed that it lost the lock. docs/failure-model.md has a script with
///   which a Redis key does that.
/// - When the process dies, the first heartbeat of another live process after the session's TTL
///   releases the lock, normally within a second, whatever the TTLs of the others are.
/// - The lock belongs to the task that runs the body, and not to child tasks or a `Task {}` made
///   there: they wait like any other task. A body that waits for such a child without a timeout
///   waits forever.
///
/// **Limits**
/// - No lock based on leases excludes a paused process by itself: between the last time it read
///   `isHeld` and its write, time may pass. Where that matters, use the fence.
/// - After ``forceRelease()``, and when Redis loses data or a failover loses the last grants,
///   another task may hold the lock before the former holder's process learns of it: normally at
///   once or with the next heartbeat, a third of the TTL later. The fences of the two differ.
///   ``withLock(timeout:durability:_:)`` returns when replicas have the grant.
///
/// ``Coordinator`` describes what timeouts, cancellation and outages of Redis mean for operations
/// that wait, and the errors that all operations throw.
///
/// Use a ``ReadWriteLock`` if readers need not exclude each other, a ``Semaphore`` for more than
/// one holder at a time, and ``Coordinator/withLocks(_:timeout:_:)`` for several locks at once.
public struct DistributedMutex: Sendable {
    let resource: Resource
    let engine: Engine
    let coordinator: Coordinator
    /// Whether a task that holds the mutex may lock it again.
    public let isReentrant: Bool
    /// Whether the tasks of this process hand the mutex over among themselves.
    public let locality: Locality
    /// `nil` for a strict mutex.
    let cohort: Cohort?

    /// The name of the mutex.
    public var name: String { resource.name }

    /// Runs `body` while holding the lock.
    ///
    /// `body` runs in the caller's isolation, so an actor's method can use the actor's state in it.
    /// It is cancelled when the caller is cancelled or the lock is lost, and a shutdown of the
    /// coordinator waits for it. If the lock was lost or the coordinator has stopped, the call
    /// throws `.lost` or `.stopped` and discards the result or the error of `body`.
    ///
    /// With a reentrant mutex, the body of a call in a task that holds the lock already gets the
    /// same lease, with the same fence.
    ///
    /// - Parameters:
    ///   - timeout: how long to wait for the lock; `nil` waits without limit, 0 tries once.
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
    /// A reentrant mutex does not recognize this lease: only bodies of ``withLock(timeout:_:)`` are
    /// reentrant. When the process dies or the lease is dropped, the lock is released as ``Lease``
    /// describes.
    ///
    /// - Parameter timeout: `nil` waits without limit, 0 tries once.
    /// - Throws: `.timedOut`, `.cancelled`, `.conflict` (the name belongs to another kind of
    ///   resource), `.destroyed`, `.invalidArgument`, `.lost`, `.notConnected`, and what
    ///   ``Coordinator`` lists for all operations.
    public func lock(timeout: Duration? = nil) async throws(RedisDCError) -> Lease {
        if let cohort { return try await cohort.lock(timeout: timeout) }
        return try await engine.lease(request, timeout: timeout)
    }

    /// Acquires the lock if it is free now.
    ///
    /// - Returns: the lease, or `nil` when the lock is held.
    /// - Throws: what ``lock(timeout:)`` throws, except `.timedOut`.
    public func tryLock() async throws(RedisDCError) -> Lease? {
        if let cohort {
            do { return try await cohort.lock(timeout: .zero) } catch  where error.code == .timedOut { return nil }
        }
        guard let grant = try await engine.acquire(request, timeout: .zero) else { return nil }
        return Lease(grant, name: name, count: 1, engine: engine)
    }

    /// Releases the lock of its holder, for operators. The holder's lease is lost, and the first
    /// waiter gets the lock.
    ///
    /// It does not check the kind: if the name belongs to another kind of resource, all holders of
    /// that resource are released.
    ///
    /// - Returns: whether there was a holder.
    /// - Throws: what ``Coordinator/forceRelease(_:holder:)`` throws.
    @discardableResult
    public func forceRelease() async throws(RedisDCError) -> Bool {
        try await coordinator.forceRelease(name) > 0
    }

    var request: Acquire { Acquire(resource: resource, mode: .lease) }
}
