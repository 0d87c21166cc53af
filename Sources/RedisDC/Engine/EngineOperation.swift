// A caller's operation on its way to the engine, and its result.
import CoordinationBase

/// A call of the engine in progress.
typealias EngineOperation = PendingOperation<EngineWork, EngineStateMachine.Outcome, RedisDCError>

/// What a caller asks of the engine.
enum EngineWork: Sendable {
    case acquire(AcquireRequest, WaitLimit?)
    indirect case call(Operation)
    case release(claim: UInt64)
    case use(claim: UInt64, EngineStateMachine.Use)
}

extension PendingOperation where Progress == EngineWork {
    /// Gives the operation to the state machine.
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

/// Kept out of the functions that wait: errors are large, and do not belong into the frames of ten thousand waiters.
extension PendingOperation
where Progress == EngineWork, Output == EngineStateMachine.Outcome, Failure == RedisDCError {
    /// `nil` when the request did not queue and there were not enough permits.
    func grant() throws(RedisDCError) -> EngineStateMachine.Grant? {
        if case .granted(let grant)? = try result?.get() { grant } else { nil }
    }

    func isGranted() throws(RedisDCError) -> Bool { try grant() != nil }

    @inline(never)
    func expectGranted() throws(RedisDCError) {
        guard try isGranted() else { throw notAvailable }
    }

    /// The request was to be granted immediately, and was not.
    var notAvailable: RedisDCError {
        guard case .acquire(let request, _) = progress else {
            return RedisDCError(.timedOut, "the operation was not available immediately")
        }
        return .timedOut("acquire \(request.resource)", after: .zero)
    }

    func count() throws(RedisDCError) -> Int {
        if case .done(let count)? = try result?.get() { count } else { 0 }
    }

    func values() throws(RedisDCError) -> [[UInt8]] {
        if case .values(let values)? = try result?.get() { values } else { [] }
    }
}
