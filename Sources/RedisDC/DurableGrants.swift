// Operations that return when replicas, or the disk, have what they have changed.
//
// Functions of their own, because the others need no memory for a durability in the frames of those who wait. What they
// add is Lease.makeDurable(_:timeout:), which serves every other lease too.
public import Hiredis

extension DistributedMutex {
    /// Runs `body` while holding the lock, once the grant is as durable as requested.
    ///
    /// A failover that loses the grant lets two holders run: the new master knows nothing of the
    /// first one. With `.replicated(1)` that takes a failover to a replica other than the one that has
    /// confirmed the grant.
    ///
    /// - Parameters:
    ///   - timeout: how long to wait for the lock; `nil` waits without limit, 0 tries once.
    ///   - durability: what must be confirmed within ``CoordinatorConfiguration/durabilityTimeout``
    ///     before `body` runs.
    ///   - body: receives the lease.
    /// - Throws: what ``withLock(timeout:_:)`` and ``Lease/makeDurable(_:timeout:)`` throw. After
    ///   `.notDurable`, `body` has not run, and the lock is released unless an outer body of this task
    ///   holds it. To keep it, call ``Lease/makeDurable(_:timeout:)`` in the body.
    public func withLock<Result>(
        timeout: Duration? = nil, durability: Durability, _ body: (Lease) async throws -> Result
    ) async throws -> Result {
        try await engine.durableChanges.check(durability)
        return try await withLock(timeout: timeout) { lease in
            try await lease.makeDurable(durability)
            return try await body(lease)
        }
    }

    /// Acquires the lock until ``Lease/release()``, and returns when the grant is as durable as
    /// requested.
    ///
    /// - Parameters:
    ///   - timeout: how long to wait for the lock; `nil` waits without limit, 0 tries once.
    ///   - durability: what must be confirmed within ``CoordinatorConfiguration/durabilityTimeout``.
    /// - Throws: what ``lock(timeout:)`` and ``Lease/makeDurable(_:timeout:)`` throw. Then the lock is
    ///   not held.
    public func lock(timeout: Duration? = nil, durability: Durability) async throws(RedisDCError) -> Lease {
        try await engine.durableChanges.check(durability)
        return try await lock(timeout: timeout).durableOrReleased(durability)
    }

    /// Acquires the lock if it is free now, and returns when the grant is as durable as requested.
    ///
    /// - Returns: the lease, or `nil` when the lock is held.
    /// - Throws: what ``lock(timeout:durability:)`` throws, except `.timedOut`.
    public func tryLock(durability: Durability) async throws(RedisDCError) -> Lease? {
        try await engine.durableChanges.check(durability)
        return try await tryLock()?.durableOrReleased(durability)
    }
}

extension ReadWriteLock {
    /// Runs `body` while holding the lock together with other readers, once the grant is as durable as
    /// requested.
    ///
    /// - Throws: what ``withReadLock(timeout:_:)`` and ``Lease/makeDurable(_:timeout:)`` throw. After
    ///   `.notDurable`, `body` has not run.
    public func withReadLock<Result>(
        timeout: Duration? = nil, durability: Durability, _ body: (Lease) async throws -> Result
    ) async throws -> Result {
        try await engine.durableChanges.check(durability)
        return try await withReadLock(timeout: timeout) { lease in
            try await lease.makeDurable(durability)
            return try await body(lease)
        }
    }

    /// Runs `body` while holding the lock alone, once the grant is as durable as requested.
    ///
    /// - Throws: what ``withWriteLock(timeout:_:)`` and ``Lease/makeDurable(_:timeout:)`` throw. After
    ///   `.notDurable`, `body` has not run.
    public func withWriteLock<Result>(
        timeout: Duration? = nil, durability: Durability, _ body: (Lease) async throws -> Result
    ) async throws -> Result {
        try await engine.durableChanges.check(durability)
        return try await withWriteLock(timeout: timeout) { lease in
            try await lease.makeDurable(durability)
            return try await body(lease)
        }
    }

    /// Acquires the lock together with other readers until ``Lease/release()``, and returns when the
    /// grant is as durable as requested.
    ///
    /// - Throws: what ``readLock(timeout:)`` and ``Lease/makeDurable(_:timeout:)`` throw. Then the lock
    ///   is not held.
    public func readLock(timeout: Duration? = nil, durability: Durability) async throws(RedisDCError) -> Lease {
        try await engine.durableChanges.check(durability)
        return try await readLock(timeout: timeout).durableOrReleased(durability)
    }

    /// Acquires the lock alone until ``Lease/release()``, and returns when the grant is as durable as
    /// requested.
    ///
    /// - Throws: what ``writeLock(timeout:)`` and ``Lease/makeDurable(_:timeout:)`` throw. Then the
    ///   lock is not held.
    public func writeLock(timeout: Duration? = nil, durability: Durability) async throws(RedisDCError) -> Lease {
        try await engine.durableChanges.check(durability)
        return try await writeLock(timeout: timeout).durableOrReleased(durability)
    }
}

extension Semaphore {
    /// Leases a permit while `body` runs, once the grant is as durable as requested.
    ///
    /// - Throws: what ``withPermits(_:timeout:durability:_:)`` throws.
    public func withPermit<Result>(
        timeout: Duration? = nil, durability: Durability, _ body: (Lease) async throws -> Result
    ) async throws -> Result {
        try await withPermits(1, timeout: timeout, durability: durability, body)
    }

    /// Leases `count` permits, all or none, while `body` runs, once the grant is as durable as
    /// requested.
    ///
    /// - Parameter durability: what must be confirmed within
    ///   ``CoordinatorConfiguration/durabilityTimeout`` before `body` runs.
    /// - Throws: what ``withPermits(_:timeout:_:)`` and ``Lease/makeDurable(_:timeout:)`` throw. After
    ///   `.notDurable`, `body` has not run, and the permits are released.
    public func withPermits<Result>(
        _ count: Int, timeout: Duration? = nil, durability: Durability, _ body: (Lease) async throws -> Result
    ) async throws -> Result {
        try await acquireLease(count, timeout: timeout, durability: durability).whileHeld(body)
    }

    /// Leases `count` permits, all or none, until ``Lease/release()``, and returns when the grant is as
    /// durable as requested.
    ///
    /// - Parameter durability: what must be confirmed within
    ///   ``CoordinatorConfiguration/durabilityTimeout``.
    /// - Throws: what ``acquireLease(_:timeout:)`` and ``Lease/makeDurable(_:timeout:)`` throw. Then no
    ///   permit is held.
    public func acquireLease(
        _ count: Int = 1, timeout: Duration? = nil, durability: Durability
    ) async throws(RedisDCError) -> Lease {
        try await engine.durableChanges.check(durability)
        return try await acquireLease(count, timeout: timeout).durableOrReleased(durability)
    }

    /// Adds permits, and returns when that is as durable as requested.
    ///
    /// - Parameters:
    ///   - count: 1 to 1,000,000, added atomically.
    ///   - durability: what must be confirmed within ``CoordinatorConfiguration/durabilityTimeout``.
    /// - Throws: what ``signal(_:)`` throws; `.unsupported`; `.notDurable` and `.cancelled` with
    ///   `mayHaveRun` when the permits are added, but that is not confirmed to be durable.
    public func signal(_ count: Int = 1, durability: Durability) async throws(RedisDCError) {
        try await engine.call(signalling(count), durability: durability)
    }
}
