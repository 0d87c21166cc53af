// How every primitive waits for its turn.
import Hiredis

extension Engine {
    /// - Parameter timeout: `nil` waits as long as it takes, 0 tries once.
    nonisolated func pendingOperation(_ request: AcquireRequest, timeout: Duration?) throws(RedisDCError)
        -> PendingOperation
    {
        if let timeout, timeout < .zero {
            throw RedisDCError(.invalidArgument, "timeout is \(timeout), expected 0 or more")
        }
        if timeout == .zero { return makePendingOperation(.take(request.once, deadline: nil)) }
        return makePendingOperation(.take(request, deadline: timeout.map { now + min($0, .maxWait) }))
    }

    /// Waits until the request is granted, or is not to be.
    nonisolated func carryOut(_ pendingOperation: PendingOperation) async {
        if instruments.isDisabled { await run(pendingOperation) } else { await runObserved(pendingOperation) }
    }

    /// Apart, because what it keeps while it waits is not needed otherwise.
    @inline(never)
    private nonisolated func runObserved(_ pendingOperation: PendingOperation) async {
        _ = try? await instruments.waiting { () async throws(RedisDCError) in
            await run(pendingOperation)
            return try pendingOperation.isGranted()
        } isGranted: {
            $0
        }
    }

    /// Waits until the request is granted.
    nonisolated func obtain(_ pendingOperation: PendingOperation) async throws(RedisDCError) {
        await carryOut(pendingOperation)
        try pendingOperation.expectGranted()
    }

    /// - Returns: `nil` when it was only tried, and not to be had.
    nonisolated func take(_ request: AcquireRequest, timeout: Duration?) async throws(RedisDCError)
        -> EngineStateMachine.Grant?
    {
        let pendingOperation = try pendingOperation(request, timeout: timeout)
        await carryOut(pendingOperation)
        return try pendingOperation.grant()
    }

    /// The same, as a lease.
    nonisolated func lease(
        _ request: AcquireRequest, timeout: Duration?
    ) async throws(RedisDCError) -> Lease {
        let pendingOperation = try pendingOperation(request, timeout: timeout)
        await carryOut(pendingOperation)
        guard let grant = try pendingOperation.grant() else { throw pendingOperation.timedOut }
        return Lease(grant, name: request.resource.name, count: request.count, engine: self)
    }
}
