// Mutual exclusion among nodes.
import Hiredis

/// A lock that one task of one node holds at a time.
///
/// ```swift
/// let mutex = try coordinator.mutex("orders")
/// try await mutex.withLock { lease in
///     try await storage.write(order, fence: lease.fence)
/// }
/// ```
///
/// **Guarantees**
/// - As long as ``Lease/isHeld`` is true, nobody else holds it. When that cannot be said any more (heartbeats fail, Redis
///   loses data, an operator takes it away), the body is cancelled and `withLock` throws `.lost`.
/// - First come, first served. Only who holds it releases it.
/// - ``Lease/fence`` grows with every grant, so that a guarded resource can refuse a holder that was paused and does not
///   know yet that it lost the lock. A script with which a Redis key does that is in docs/failure-model.md.
/// - When the process dies, the lock is free after the session's TTL.
///
/// **Limits**
/// - No lock with leases excludes a paused process by itself: between its last look at `isHeld` and its write, time may
///   pass. Where that matters, use the fence.
/// - A failover of Redis can lose the last grants; then two may hold it for a moment, told apart by their fences.
public struct DistributedMutex: Sendable {
    let resource: Resource
    let engine: Engine
    let coordinator: Coordinator
    public let isReentrant: Bool

    public var name: String { resource.name }

    /// Runs `body` with the lock held.
    ///
    /// - Parameter timeout: how long to wait for it; `nil` as long as it takes, 0 tries once.
    /// - Throws: what `body` throws, and what ``lock(timeout:)`` and ``Lease/release()`` throw. `.invalidArgument` when the
    ///   task holds it already and it is not reentrant: it would wait for itself.
    public func withLock<Result: Sendable>(
        timeout: Duration? = nil, _ body: @escaping @Sendable (Lease) async throws -> Result
    ) async throws -> Result {
        if let outer = Lease.heldByTask(name, engine) {
            guard isReentrant else {
                throw RedisDCError(
                    .invalidArgument,
                    "this task holds \"\(name)\" already and would wait for itself; make the mutex with isReentrant: true"
                )
            }
            // The same lease: its fence stays, and the outermost body releases.
            try outer.check()
            return try await body(outer)
        }
        return try await engine.holding(try await lock(timeout: timeout), knownToTask: true, body)
    }

    /// Locks it until ``Lease/release()``.
    ///
    /// - Parameter timeout: from 1 ms; 0 tries once, `nil` waits as long as it takes.
    /// - Throws: `.timedOut`, `.cancelled`, `.stopped`, `.conflict` (the name is a semaphore's), `.destroyed`.
    public func lock(timeout: Duration? = nil) async throws(RedisDCError) -> Lease {
        try await engine.lease(request, timeout: timeout)
    }

    /// Locks it if it is free now.
    public func tryLock() async throws(RedisDCError) -> Lease? {
        guard let grant = try await engine.acquire(request, timeout: .zero) else { return nil }
        return Lease(grant, name: name, count: 1, engine: engine)
    }

    /// Takes it away from whoever holds it, for operators. The holder is told, and the next in the queue gets it.
    ///
    /// - Returns: whether anybody held it.
    @discardableResult
    public func forceRelease() async throws(RedisDCError) -> Bool {
        try await coordinator.forceRelease(name) > 0
    }

    var request: AcquireRequest { AcquireRequest(resource: resource, mode: .lease) }
}
