// The operations that the primitives call.
import CoordinationBase
import Hiredis

/// A call of a primitive that waits for its result.
typealias PendingCall = PendingOperation<Engine.Begin?, EngineStateMachine.Output, RedisDCError>

// A task that runs on the client's executor calls these without a change of executor; any other task changes once.
extension Engine {
    nonisolated var now: Duration { clock.now() }

    private nonisolated func pending(_ begin: @escaping Begin) -> PendingCall { PendingCall(id: ids.next(), begin) }

    // MARK: Acquire

    /// Returns the call that carries out a request.
    ///
    /// - Parameter timeout: `nil` sets no limit; 0 does not wait.
    nonisolated func pending(_ request: Acquire, timeout: Duration?) throws(RedisDCError) -> PendingCall {
        let limit = try waitLimit(timeout)
        let request = timeout == .zero ? request.withoutQueueing : request
        return pending { engine, id in engine.machine.acquire(id, request, limit: limit, now: engine.now) }
    }

    /// Returns the limit of a wait; `nil` for none, and for a timeout of 0, which does not wait.
    nonisolated func waitLimit(_ timeout: Duration?) throws(RedisDCError) -> WaitLimit? {
        guard let timeout, timeout != .zero else { return nil }
        if timeout < .zero { throw RedisDCError(.invalidArgument, "timeout is \(timeout), expected 0 or more") }
        return WaitLimit(timeout: timeout, deadline: now + min(timeout, .maxWait))
    }

    /// Waits until the call has its result, and records it in metrics and traces.
    nonisolated func carryOutAcquire(_ call: PendingCall) async {
        if instruments.isDisabled { await carryOut(call) } else { await carryOutObserved(call) }
    }

    /// A function of its own, so that waiters without instruments do not need its larger frame.
    @inline(never)
    private nonisolated func carryOutObserved(_ call: PendingCall) async {
        _ = try? await instruments.waiting { () async throws(RedisDCError) in
            await carryOut(call)
            return try call.isGranted()
        } isGranted: {
            $0
        }
    }

    /// Waits until the request is granted.
    ///
    /// - Throws: `.timedOut` also when the timeout is 0 and the request was not granted immediately.
    nonisolated func obtain(_ call: PendingCall) async throws(RedisDCError) {
        await carryOutAcquire(call)
        try call.expectGranted()
    }

    /// Waits until the request is granted.
    ///
    /// - Throws: what ``obtain(_:)`` throws.
    @discardableResult
    nonisolated func obtain(
        _ request: Acquire, timeout: Duration?
    ) async throws(RedisDCError) -> EngineStateMachine.Grant {
        let call = try pending(request, timeout: timeout)
        await carryOutAcquire(call)
        return try call.expectedGrant()
    }

    /// Waits until the request is granted, and returns the lease.
    nonisolated func lease(_ request: Acquire, timeout: Duration?) async throws(RedisDCError) -> Lease {
        let grant = try await obtain(request, timeout: timeout)
        return Lease(grant, name: request.resource.name, count: request.count, engine: self)
    }

    /// Waits until a place of a buffer is granted, and returns the lease.
    ///
    /// - Returns: `nil` when the item with the id of the put was put before.
    nonisolated func leasePlace(_ request: Acquire, timeout: Duration?) async throws(RedisDCError) -> Lease? {
        let call = try pending(request, timeout: timeout)
        await carryOutAcquire(call)
        if try call.isKnown() { return nil }
        return Lease(try call.expectedGrant(), name: request.resource.name, count: request.count, engine: self)
    }

    /// Waits until the request is granted.
    ///
    /// - Returns: `nil` when the timeout is 0 and there are not enough permits.
    nonisolated func acquire(
        _ request: Acquire, timeout: Duration?
    ) async throws(RedisDCError) -> EngineStateMachine.Grant? {
        let call = try pending(request, timeout: timeout)
        await carryOutAcquire(call)
        return try call.grant()
    }

    // MARK: Other operations

    /// Carries out an operation that is not about a claim of the caller.
    nonisolated func call<Operation: EngineOperation>(
        _ operation: Operation
    ) async throws(RedisDCError) -> Operation.Value {
        let call = pending { engine, id in engine.machine.call(id, operation, now: engine.now) }
        await carryOut(call)
        return try call.value(of: Operation.self)
    }

    /// Carries out an operation on a lease.
    ///
    /// - Throws: `.lost` when the lease is not held, and what the operation throws.
    nonisolated func use<Operation: EngineOperation>(
        _ claim: UInt64, _ operation: @escaping @Sendable (HeldClaim) -> Operation
    ) async throws(RedisDCError) -> Operation.Value {
        let call = pending { engine, id in engine.machine.use(id, claim: claim, now: engine.now, operation) }
        await carryOut(call)
        return try call.value(of: Operation.self)
    }

    /// Releases a lease, whether the task is cancelled or not.
    nonisolated func release(_ claim: UInt64) async throws(RedisDCError) {
        let call = pending { engine, id in
            engine.watches[claim] = nil
            return engine.machine.release(claim, releaser: id, now: engine.now)
        }
        await carryOutUncancellably(call)
        _ = try call.result?.get()
    }

    /// Releases a lease without waiting for the outcome.
    nonisolated func releaseSoon(_ claim: UInt64) { enter { $0.releaseUnobserved(claim) } }

    /// Reads the data of a lease: the item that it takes from a buffer, or the values that all parties of a meeting
    /// have brought. Empty if it is gone.
    nonisolated func read(_ claim: UInt64) async throws(RedisDCError) -> [[UInt8]] {
        var (values, first) = ([[UInt8]](), 0)
        repeat {
            let page = try await use(claim) { [first] in ReadValues(held: $0, first: first) }
            values += page.values
            first = page.next
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
        let isPassed = try await use(claim) { Pass(held: $0, target: resource, item: item, id: id) }
        if isPassed { enter { $0.forgetWatch(claim) } }
        return isPassed
    }

    /// Returns whether a lease is still held, after a request that may have released it.
    nonisolated func holds(_ claim: UInt64) async -> Bool {
        await withCheckedContinuation { continuation in
            enter { continuation.resume(returning: $0.checkHeld(claim)) }
        }
    }
}

// MARK: Results

// Functions of their own, because errors are large: in the functions that wait, they would enlarge the frame of each of
// ten thousand waiters.
extension PendingOperation
where Progress == Engine.Begin?, Output == EngineStateMachine.Output, Failure == RedisDCError {
    /// Returns the grant, or `nil` when the request may not queue and there were not enough permits.
    func grant() throws(RedisDCError) -> EngineStateMachine.Grant? {
        if case .granted(let grant)? = try result?.get() { grant } else { nil }
    }

    func isGranted() throws(RedisDCError) -> Bool { try grant() != nil }

    @inline(never)
    func expectGranted() throws(RedisDCError) { _ = try expectedGrant() }

    /// Returns the grant.
    ///
    /// - Throws: also when the request may not queue and was not granted immediately.
    @inline(never)
    func expectedGrant() throws(RedisDCError) -> EngineStateMachine.Grant {
        switch try result?.get() {
        case .granted(let grant)?: return grant
        case .notAvailable(let request)?: throw request.notGranted(within: .zero)
        case .answered?, nil: throw RedisDCError(.timedOut, "the operation was not available immediately")
        }
    }

    /// Whether the operation has had no effect, because the item with the id of its put was put before.
    func isKnown() throws(RedisDCError) -> Bool {
        if case .answered(.known)? = try result?.get() { true } else { false }
    }

    /// Returns what the operation reads from the reply.
    func value<Operation: EngineOperation>(of operation: Operation.Type) throws(RedisDCError) -> Operation.Value {
        guard case .answered(let reply)? = try result?.get(), let value = operation.value(of: reply) else {
            throw RedisDCError(.serverError, "the reply is not one of \(operation)", mayHaveRun: true)
        }
        return value
    }
}
