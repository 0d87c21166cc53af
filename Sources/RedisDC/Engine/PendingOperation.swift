// What a caller wants of the engine, on its way there, and what became of it.

/// Holds what otherwise every function between the caller and the engine would keep in its frame, for as long as it waits:
/// frames are allocated anew for each of ten thousand waiters (docs/decisions.md).
///
/// `@unchecked`: only the task that made it writes and reads `answer`; the rest does not change.
final class PendingOperation: @unchecked Sendable {
    enum Work: Sendable {
        case take(AcquireRequest, deadline: Duration?)
        indirect case call(Operation)
        case release(claim: UInt64)
        case use(claim: UInt64, EngineStateMachine.Use)
    }

    let id: UInt64
    let work: Work
    var answer: Answer?

    /// What the waiting functions pass on is one reference.
    final class Answer: Sendable {
        let result: Result<EngineStateMachine.Outcome, RedisDCError>

        init(_ result: Result<EngineStateMachine.Outcome, RedisDCError>) { self.result = result }
    }

    init(_ id: UInt64, _ work: Work) { (self.id, self.work) = (id, work) }

    /// Hands it to the machine.
    func begin(_ machine: inout EngineStateMachine, now: Duration) -> [EngineStateMachine.Action] {
        switch work {
        case .take(let request, let deadline): machine.acquire(id, request, deadline: deadline, now: now)
        case .call(let operation): machine.call(id, operation, now: now)
        case .release(let claim): machine.release(claim, releaser: id, now: now)
        case .use(let claim, let use): machine.use(id, claim: claim, use, now: now)
        }
    }

    // MARK: When it is done

    /// `nil`: it was only tried, and not to be had.
    func grant() throws(RedisDCError) -> EngineStateMachine.Grant? {
        if case .granted(let grant)? = try answer?.result.get() { grant } else { nil }
    }

    var timedOut: RedisDCError {
        guard case .take(let request, _) = work else { return RedisDCError(.timedOut, "it did not end in time") }
        return RedisDCError(
            .timedOut, "the \(request.resource.kind.title) \"\(request.resource.name)\" was not to be had in time")
    }

    /// Apart, like everything here: errors are big, and have no place in the frames of those who wait.
    @inline(never)
    func expectGranted() throws(RedisDCError) {
        guard try isGranted() else { throw timedOut }
    }

    func isGranted() throws(RedisDCError) -> Bool { try grant() != nil }

    func count() throws(RedisDCError) -> Int {
        if case .done(let count)? = try answer?.result.get() { count } else { 0 }
    }

    func values() throws(RedisDCError) -> [[UInt8]] {
        if case .values(let values)? = try answer?.result.get() { values } else { [] }
    }
}
