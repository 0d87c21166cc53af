// The operations that the primitives call.
import CoordinationBase
import Hiredis

// A task that runs on the client's executor calls these without a change of executor; any other task changes once.
extension Engine {
    nonisolated var now: Duration { clock.now() }

    private nonisolated func operation(_ work: EngineWork) -> EngineOperation {
        EngineOperation(id: ids.next(), work)
    }

    // MARK: Acquire

    /// Returns the operation that carries out a request.
    ///
    /// - Parameter timeout: `nil` sets no limit; 0 does not wait.
    nonisolated func operation(_ request: AcquireRequest, timeout: Duration?) throws(RedisDCError) -> EngineOperation {
        let limit = try waitLimit(timeout)
        return operation(.acquire(timeout == .zero ? request.withoutQueueing : request, limit))
    }

    /// Returns the limit of a wait; `nil` for none, and for a timeout of 0, which does not wait.
    nonisolated func waitLimit(_ timeout: Duration?) throws(RedisDCError) -> WaitLimit? {
        guard let timeout, timeout != .zero else { return nil }
        if timeout < .zero { throw RedisDCError(.invalidArgument, "timeout is \(timeout), expected 0 or more") }
        return WaitLimit(timeout: timeout, deadline: now + min(timeout, .maxWait))
    }

    /// Waits until the operation has its result, and records it in metrics and traces.
    nonisolated func carryOutAcquire(_ operation: EngineOperation) async {
        if instruments.isDisabled { await carryOut(operation) } else { await carryOutObserved(operation) }
    }

    /// A function of its own, so that waiters without instruments do not need its larger frame.
    @inline(never)
    private nonisolated func carryOutObserved(_ operation: EngineOperation) async {
        _ = try? await instruments.waiting { () async throws(RedisDCError) in
            await carryOut(operation)
            return try operation.isGranted()
        } isGranted: {
            $0
        }
    }

    /// Waits until the request is granted.
    ///
    /// - Throws: `.timedOut` also when the timeout is 0 and the request was not granted immediately.
    nonisolated func obtain(_ operation: EngineOperation) async throws(RedisDCError) {
        await carryOutAcquire(operation)
        try operation.expectGranted()
    }

    /// Waits until the request is granted.
    ///
    /// - Throws: what ``obtain(_:)`` throws.
    @discardableResult
    nonisolated func obtain(
        _ request: AcquireRequest, timeout: Duration?
    ) async throws(RedisDCError) -> EngineStateMachine.Grant {
        let operation = try operation(request, timeout: timeout)
        await carryOutAcquire(operation)
        guard let grant = try operation.grant() else { throw operation.notAvailable }
        return grant
    }

    /// Waits until the request is granted, and returns the lease.
    nonisolated func lease(_ request: AcquireRequest, timeout: Duration?) async throws(RedisDCError) -> Lease {
        let grant = try await obtain(request, timeout: timeout)
        return Lease(grant, name: request.resource.name, count: request.count, engine: self)
    }

    /// Waits until a place of a buffer is granted, and returns the lease.
    ///
    /// - Returns: `nil` when the item with the id of the put was put before.
    nonisolated func leasePlace(_ request: AcquireRequest, timeout: Duration?) async throws(RedisDCError) -> Lease? {
        let operation = try operation(request, timeout: timeout)
        await carryOutAcquire(operation)
        if try operation.isKnown() { return nil }
        guard let grant = try operation.grant() else { throw operation.notAvailable }
        return Lease(grant, name: request.resource.name, count: request.count, engine: self)
    }

    /// Waits until the request is granted.
    ///
    /// - Returns: `nil` when the timeout is 0 and there are not enough permits.
    nonisolated func acquire(
        _ request: AcquireRequest, timeout: Duration?
    ) async throws(RedisDCError) -> EngineStateMachine.Grant? {
        let operation = try operation(request, timeout: timeout)
        await carryOutAcquire(operation)
        return try operation.grant()
    }

    // MARK: Other operations

    nonisolated func call(_ work: Operation) async throws(RedisDCError) -> Int {
        let operation = operation(.call(work))
        await carryOut(operation)
        return try operation.count()
    }

    /// Releases a lease, whether the task is cancelled or not.
    nonisolated func release(_ claim: UInt64) async throws(RedisDCError) {
        let operation = operation(.release(claim: claim))
        await carryOutUncancellably(operation)
        _ = try operation.count()
    }

    /// Releases a lease without waiting for the outcome.
    nonisolated func releaseSoon(_ claim: UInt64) { enter { $0.releaseUnobserved(claim) } }

    /// Releases all but `keep` of a lease's permits.
    nonisolated func reduce(_ claim: UInt64, keep: Int) async throws(RedisDCError) -> Int {
        try await use(claim, .reduce(keep: keep)).count()
    }

    /// Reserves more fences for the cohort that holds a lease.
    ///
    /// - Returns: the last fence that it may use, and whether others wait; `nil` when no more can be reserved.
    nonisolated func extendFences(_ claim: UInt64) async throws(RedisDCError) -> (end: UInt64, isAwaited: Bool)? {
        try await use(claim, .extendFences).fences()
    }

    /// Reads the data of a lease: the item that it takes from a buffer, or the values that all parties of a meeting
    /// have brought. Empty if it is gone.
    nonisolated func read(_ claim: UInt64) async throws(RedisDCError) -> [[UInt8]] {
        var (values, first) = ([[UInt8]](), 0)
        repeat {
            guard let (page, next) = try await use(claim, .read(first: first)).values() else { return [] }
            values += page
            first = next
        } while first > 0
        return values
    }

    /// Turns a lease into a permit of another resource, which ends the lease.
    ///
    /// - Parameter id: of a put that takes effect once.
    /// - Returns: false if the item with this id was put before. Then the lease is still held.
    nonisolated func pass(
        _ claim: UInt64, to resource: Resource, item: [UInt8]?, id: String?
    ) async throws(RedisDCError) -> Bool {
        let operation = await use(claim, .pass(to: resource, item: item, id: id))
        if try operation.isKnown() { return false }
        enter { $0.forgetWatch(claim) }
        return true
    }

    private nonisolated func use(_ claim: UInt64, _ leaseOperation: EngineStateMachine.LeaseOperation) async
        -> EngineOperation
    {
        let operation = operation(.use(claim: claim, leaseOperation))
        await carryOut(operation)
        return operation
    }

    /// Returns whether a lease is still held, after a request that may have released it.
    nonisolated func holds(_ claim: UInt64) async -> Bool {
        await withCheckedContinuation { continuation in
            enter { continuation.resume(returning: $0.checkHeld(claim)) }
        }
    }
}
