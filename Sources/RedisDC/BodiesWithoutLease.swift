// The functions that run a body while something is held, for bodies that do not use the lease.
//
// Each is the function of the same name whose body receives the lease, with the same guarantees and errors.

extension DistributedMutex {
    /// Runs `body` while the mutex is held.
    ///
    /// As ``withLock(timeout:_:)`` does, for a body that does not use the lease.
    public func withLock<Result>(
        timeout: Duration? = nil, body: () async throws -> Result
    ) async throws -> Result {
        try await withLock(timeout: timeout) { _ in try await body() }
    }
}

extension Semaphore {
    /// Runs `body` while one permit is leased.
    ///
    /// As ``withPermit(timeout:_:)`` does, for a body that does not use the lease.
    public func withPermit<Result>(
        timeout: Duration? = nil, body: () async throws -> Result
    ) async throws -> Result {
        try await withPermit(timeout: timeout) { _ in try await body() }
    }
}

extension Semaphore {
    /// Runs `body` while permits are leased.
    ///
    /// As ``withPermits(_:timeout:_:)`` does, for a body that does not use the lease.
    public func withPermits<Result>(
        _ count: Int, timeout: Duration? = nil, body: () async throws -> Result
    ) async throws -> Result {
        try await withPermits(count, timeout: timeout) { _ in try await body() }
    }
}

extension ReadWriteLock {
    /// Runs `body` while the lock is held for reading.
    ///
    /// As ``withReadLock(timeout:_:)`` does, for a body that does not use the lease.
    public func withReadLock<Result>(
        timeout: Duration? = nil, body: () async throws -> Result
    ) async throws -> Result {
        try await withReadLock(timeout: timeout) { _ in try await body() }
    }
}

extension ReadWriteLock {
    /// Runs `body` while the lock is held for writing.
    ///
    /// As ``withWriteLock(timeout:_:)`` does, for a body that does not use the lease.
    public func withWriteLock<Result>(
        timeout: Duration? = nil, body: () async throws -> Result
    ) async throws -> Result {
        try await withWriteLock(timeout: timeout) { _ in try await body() }
    }
}

extension Election {
    /// Waits until this task leads, runs `body`, and resigns.
    ///
    /// As ``withLeadership(timeout:_:)`` does, for a body that does not use the leadership.
    public func withLeadership<Result>(
        timeout: Duration? = nil, body: () async throws -> Result
    ) async throws -> Result {
        try await withLeadership(timeout: timeout) { _ in try await body() }
    }
}

extension LightSwitch {
    /// Runs `body` as a member of the group.
    ///
    /// As ``withLock(timeout:_:)`` does, for a body that does not use the lease.
    public func withLock<Result>(
        timeout: Duration? = nil, body: () async throws -> Result
    ) async throws -> Result {
        try await withLock(timeout: timeout) { _ in try await body() }
    }
}

extension Latch {
    /// Runs `body` as a participant, and counts down when it ends, whether it returns or throws.
    ///
    /// As ``withParticipation(_:)`` does, for a body that does not use the participation.
    public func withParticipation<Result>(body: () async throws -> Result) async throws -> Result {
        try await withParticipation { _ in try await body() }
    }
}

extension Coordinator {
    /// Runs `body` while holding all of several mutexes.
    ///
    /// As ``withLocks(_:timeout:_:)`` does, for a body that does not use the leases.
    public func withLocks<Result>(
        _ mutexes: [DistributedMutex], timeout: Duration? = nil, body: () async throws -> Result
    ) async throws -> Result {
        try await withLocks(mutexes, timeout: timeout) { _ in try await body() }
    }
}
