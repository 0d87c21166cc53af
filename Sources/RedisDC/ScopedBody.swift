// Runs a body that holds something, cancels it when that is lost, and gives back whatever happens.
import Hiredis

extension Engine {
    /// Runs `body` with the lease and releases it.
    ///
    /// - Parameter knownToTask: whether the task, if it wants the same a second time, is to find this lease.
    /// - Throws: what `body` throws; `.lost` when the lease was lost before the end, whatever `body` then returned or threw.
    nonisolated func holding<Result: Sendable>(
        _ lease: Lease, knownToTask: Bool = false, _ body: @escaping @Sendable (Lease) async throws -> Result
    ) async throws -> Result {
        if knownToTask {
            return try await Lease.$all.withValue(Lease.all + [lease]) { try await holding(lease, body) }
        }
        if Task.isCancelled {
            try? await lease.release()
            throw RedisDCError(.cancelled, "the task was cancelled")
        }
        bodyBegan()
        let result = await instruments.holding { () async -> Swift.Result<Result, any Error> in
            do { return .success(try await cancelledOnLoss(lease, body)) } catch { return .failure(error) }
        }
        bodyEnded()
        try await lease.release()
        return try result.get()
    }

    private nonisolated func cancelledOnLoss<Result: Sendable>(
        _ lease: Lease, _ body: @escaping @Sendable (Lease) async throws -> Result
    ) async throws -> Result {
        try await withThrowingTaskGroup(of: Result.self) { group in
            let end = BodyEnd()
            lease.onLoss { _ in end.reach(.lost) }
            group.addTask {
                defer { end.reach(.finished) }
                return try await body(lease)
            }
            if await end.value() == .lost { group.cancelAll() }
            return try await group.next()!
        }
    }
}

/// What ends first: the body, or its right to run.
private final class BodyEnd: Sendable {
    enum Reason { case finished, lost }

    private enum State {
        case open
        case awaited(CheckedContinuation<Reason, Never>)
        case reached(Reason)
    }
    private let state = Locked(State.open)

    func reach(_ reason: Reason) {
        let continuation = state.withLock { state -> CheckedContinuation<Reason, Never>? in
            switch state {
            case .open:
                state = .reached(reason)
                return nil
            case .awaited(let continuation):
                state = .reached(reason)
                return continuation
            case .reached: return nil
            }
        }
        continuation?.resume(returning: reason)
    }

    func value() async -> Reason {
        await withCheckedContinuation { continuation in
            let reason = state.withLock { state -> Reason? in
                if case .reached(let reason) = state { return reason }
                state = .awaited(continuation)
                return nil
            }
            if let reason { continuation.resume(returning: reason) }
        }
    }
}
