// Locks several mutexes for one body, always in the same order, so that such calls cannot deadlock.
import CoordinationBase
import Hiredis

extension Coordinator {
    /// Runs `body` while holding all of several mutexes.
    ///
    /// ```swift
    /// let (from, to) = (try coordinator.mutex("account 1"), try coordinator.mutex("account 2"))
    /// try await coordinator.withLocks([from, to]) { leases in
    ///     try await transfer(fences: leases.map(\.fence))
    /// }
    /// ```
    ///
    /// The mutexes are locked one after the other in the order of the bytes of their names,
    /// whatever the order of the list, so that calls of this function cannot wait for each other in
    /// a circle. A call inside the body of another lock can: lock everything in one call. If one
    /// mutex cannot be locked, none stays locked. When one lock is lost, or the caller is
    /// cancelled, the body is cancelled; it runs in the caller's isolation.
    ///
    /// - Parameters:
    ///   - mutexes: mutexes of this coordinator. One that is listed twice is locked once.
    ///   - timeout: for all locks together; `nil` waits without limit, 0 tries each once.
    ///   - body: receives a lease for each element of `mutexes`, in their order.
    /// - Throws: what `body` throws; `.timedOut` or `.cancelled` (see
    ///   ``RedisDCError/Code/cancelled``); `.lost` when a lock was lost before the body returned;
    ///   `.invalidArgument` when a mutex is of another coordinator; and what
    ///   ``DistributedMutex/withLock(timeout:_:)`` throws.
    public func withLocks<Result>(
        _ mutexes: [DistributedMutex], timeout: Duration? = nil, _ body: ([Lease]) async throws -> Result
    ) async throws -> Result {
        if let timeout, timeout < .zero {
            throw RedisDCError(
                .invalidArgument, "cannot lock several mutexes: timeout is \(timeout), expected 0 or more")
        }
        for mutex in mutexes where mutex.coordinator !== self {
            throw RedisDCError(
                .invalidArgument,
                "cannot lock mutex \"\(mutex.name)\" with others: it is of another coordinator; make it with this one")
        }
        let ordered = Dictionary(mutexes.map { (ByteName($0.name), $0) }) { first, _ in first }.values
            .sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
        let deadline = timeout.map { clock.now() + min($0, .maxWait) }
        return try await hold(ordered[...], [:], timeout, deadline) { held in
            try await body(mutexes.map { held[ByteName($0.name)]! })
        }
    }

    private func hold<Result>(
        _ mutexes: ArraySlice<DistributedMutex>, _ held: [ByteName: Lease], _ timeout: Duration?,
        _ deadline: Duration?, _ body: ([ByteName: Lease]) async throws -> Result
    ) async throws -> Result {
        guard let first = mutexes.first else { return try await body(held) }
        // Past the deadline, a free mutex is still locked: 1 ms, unless the caller asked for a single attempt.
        let rest = deadline.map { timeout == .zero ? .zero : max(.milliseconds(1), $0 - clock.now()) }
        return try await first.withLock(timeout: rest) { lease in
            try await hold(
                mutexes.dropFirst(), held.merging([ByteName(first.name): lease]) { $1 }, timeout, deadline, body)
        }
    }
}
