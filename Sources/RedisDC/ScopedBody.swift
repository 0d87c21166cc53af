// Runs a body while a lease is held, cancels it when the lease is lost, and releases the lease afterwards.
//
// The functions that call this one inherit their caller's isolation (NonisolatedNonsendingByDefault). An explicit
// parameter for it, as here, would be in the frames of callers that wait: 32 bytes each.
import Hiredis

extension Lease {
    /// Runs `body` in the caller's isolation, then releases the lease.
    ///
    /// The body runs in a child task, so that it can be cancelled alone; the caller's cancellation
    /// and task-local values reach it. A shutdown of the coordinator waits for it.
    ///
    /// - Parameter isOwnedByTask: whether a lock that asks for the same name in the body's task
    ///   finds this lease.
    /// - Throws: what `body` throws; `.lost` or `.stopped` when the lease was lost or the
    ///   coordinator stopped before the body returned, and any other error of the release, whatever
    ///   `body` returned or threw; `.cancelled` when the task was cancelled before the body began.
    func whileHeld<Result>(
        isOwnedByTask: Bool = false, isolation: isolated (any Actor)? = #isolation,
        _ body: (Lease) async throws -> Result
    ) async throws -> Result {
        let result = try await resultWhileHeld(isOwnedByTask: isOwnedByTask, isolation: isolation, body)
        try await release()
        return try result.get()
    }

    /// Runs `body` as ``whileHeld(isOwnedByTask:isolation:_:)`` does, and leaves the release to the caller.
    ///
    /// - Returns: what `body` returned or threw.
    /// - Throws: `.cancelled` when the task was cancelled before the body began; then the lease is
    ///   released.
    func resultWhileHeld<Result>(
        isOwnedByTask: Bool = false, isolation: isolated (any Actor)? = #isolation,
        _ body: (Lease) async throws -> Result
    ) async throws -> Swift.Result<Result, any Error> {
        if Task.isCancelled {
            try? await release()
            throw RedisDCError(.cancelled, "cannot run the body that holds \"\(name)\": the task was cancelled")
        }
        // The calling task waits while the body runs, so the body's task owns what the calling task owns.
        let outer = LeaseOwnership.ofCurrentTask
        engine.bodyBegan()
        let result = await engine.instruments.holding {
            await cancelledOnLoss(isOwnedByTask, outer, isolation: isolation, body)
        }
        engine.bodyEnded()
        return result
    }

    private func cancelledOnLoss<Result>(
        _ isOwnedByTask: Bool, _ outer: LeaseOwnership?, isolation: isolated (any Actor)?,
        _ body: (Lease) async throws -> Result
    ) async -> Swift.Result<Result, any Error> {
        await withoutActuallyEscaping(body) { body in
            // One child task uses both, isolated as the caller is, while the caller waits for the end of the group: no two
            // uses are concurrent, and none is after this scope.
            nonisolated(unsafe) let body = body
            nonisolated(unsafe) var result: Swift.Result<Result, any Error>?
            await withTaskGroup(of: Void.self, isolation: isolation) { group in
                let end = BodyEnd()
                let child = { @Sendable [self] () async in
                    result = await run(isOwnedByTask, outer, isolation: isolation, body)
                    end.reach(.finished)
                }
                if #available(macOS 26, *) {
                    // Begins at once, without a change of thread.
                    group.addImmediateTask { await child() }
                } else {
                    group.addTask { await child() }
                }
                if !end.isReached {
                    onLoss { _ in end.reach(.lost) }
                    if await end.value() == .lost { group.cancelAll() }
                }
                await group.waitForAll()
            }
            return result!
        }
    }

    private func run<Result>(
        _ isOwnedByTask: Bool, _ outer: LeaseOwnership?, isolation: isolated (any Actor)?,
        _ body: (Lease) async throws -> Result
    ) async -> sending Swift.Result<Result, any Error> {
        do {
            // Safe for the same reason: the value goes back to the caller, whose isolation this is.
            nonisolated(unsafe) let value = try await LeaseOwnership.with(
                isOwnedByTask ? self : nil, outer, isolation: isolation
            ) {
                try await body(self)
            }
            return .success(value)
        } catch { return .failure(error) }
    }
}
