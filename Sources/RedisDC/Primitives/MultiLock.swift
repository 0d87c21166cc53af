// Several mutexes at once, without deadlock.
import Hiredis
import CoordinationBase

extension Coordinator {
    /// Runs `body` while holding all these mutexes, or none.
    ///
    /// They are taken one after the other in the order of their names, as everyone does, so that no two can wait for each
    /// other; a name that comes twice counts once. When one is lost, the body is cancelled and `.lost` is thrown.
    ///
    /// - Parameter timeout: for all together; `nil` waits as long as it takes.
    /// - Throws: what `body` throws; `.invalidArgument`, also for two names of different bytes that are the same text to
    ///   Swift; `.timedOut`, `.cancelled` (then none is held), and what
    ///   ``DistributedMutex/withLock(timeout:_:)`` throws.
    public func withLocks<Result: Sendable>(
        _ names: [String], timeout: Duration? = nil,
        _ body: @escaping @Sendable ([String: Lease]) async throws -> Result
    ) async throws -> Result {
        if let timeout, timeout < .zero {
            throw RedisDCError(.invalidArgument, "timeout is \(timeout), expected 0 or more")
        }
        if let fault = faultOfNames(names) { throw RedisDCError(.invalidArgument, fault) }
        let ordered = Set(names).sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
        let mutexes = try ordered.map { try mutex($0) }
        let deadline = timeout.map { ContinuousClock.now + min($0, .maxWait) }
        return try await hold(mutexes[...], [:], timeout, deadline, body)
    }

    private func hold<Result: Sendable>(
        _ mutexes: ArraySlice<DistributedMutex>, _ held: [String: Lease], _ timeout: Duration?,
        _ deadline: ContinuousClock.Instant?, _ body: @escaping @Sendable ([String: Lease]) async throws -> Result
    ) async throws -> Result {
        guard let first = mutexes.first else { return try await body(held) }
        // Once begun with time to wait, a mutex that is free is taken even if no time is left.
        let rest = deadline.map { timeout == .zero ? .zero : max(.milliseconds(1), $0 - .now) }
        return try await first.withLock(timeout: rest) { lease in
            try await self.hold(
                mutexes.dropFirst(), held.merging([first.name: lease]) { $1 }, timeout, deadline, body)
        }
    }
}
