// An operation that a primitive requests from the engine, and its result.
import CoordinationBase

/// An operation of the engine in progress.
typealias EngineOperation = PendingOperation<EngineWork, EngineStateMachine.Output, RedisDCError>

/// The operation that a caller requests from the engine.
enum EngineWork: Sendable {
    case acquire(AcquireRequest, WaitLimit?)
    indirect case call(Operation)
    case release(claim: UInt64)
    case use(claim: UInt64, EngineStateMachine.LeaseOperation)
}

extension PendingOperation where Progress == EngineWork {
    /// Passes the operation to the state machine.
    func begin(_ machine: inout EngineStateMachine, now: Duration) -> EngineStateMachine.CallAction {
        switch progress {
        case .acquire(let request, let limit): machine.acquire(id, request, limit: limit, now: now)
        case .call(let operation): machine.call(id, operation, now: now)
        case .release(let claim): machine.release(claim, releaser: id, now: now)
        case .use(let claim, let use): machine.use(id, claim: claim, use, now: now)
        }
    }
}

// MARK: Results

/// Functions of their own, because errors are large: in the functions that wait, they would enlarge the frame of each
/// of ten thousand waiters.
extension PendingOperation
where Progress == EngineWork, Output == EngineStateMachine.Output, Failure == RedisDCError {
    /// Returns the grant, or `nil` when the request may not queue and there were not enough permits.
    func grant() throws(RedisDCError) -> EngineStateMachine.Grant? {
        if case .granted(let grant)? = try result?.get() { grant } else { nil }
    }

    /// Whether the operation has had no effect, because the item with the id of its put was put before.
    func isKnown() throws(RedisDCError) -> Bool { if case .known? = try result?.get() { true } else { false } }

    func isGranted() throws(RedisDCError) -> Bool { try grant() != nil }

    @inline(never)
    func expectGranted() throws(RedisDCError) {
        guard try isGranted() else { throw notAvailable }
    }

    /// The error of a request that may not queue and was not granted immediately.
    var notAvailable: RedisDCError {
        guard case .acquire(let request, _) = progress else {
            return RedisDCError(.timedOut, "the operation was not available immediately")
        }
        return request.notGranted(within: .zero)
    }

    /// The last fence that a cohort may use, and whether others wait for the mutex.
    func fences() throws(RedisDCError) -> (end: UInt64, isAwaited: Bool)? {
        if case .fences(let end, let isAwaited)? = try result?.get() { (end, isAwaited) } else { nil }
    }

    func count() throws(RedisDCError) -> Int {
        if case .done(let count)? = try result?.get() { count } else { 0 }
    }

    /// A page of values and the first of the next page, or 0; `nil` if the values are gone.
    func values() throws(RedisDCError) -> (page: [[UInt8]], next: Int)? {
        if case .values(let page, let next)? = try result?.get() { (page, next) } else { nil }
    }
}
