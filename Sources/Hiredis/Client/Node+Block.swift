// Blocking commands with precise timeouts, and without a loss on cancellation.
import NIOCore

extension Node {
    /// Runs a blocking command on a lane of its own: see ``Redis/block(_:timeout:giveBack:)``.
    ///
    /// - Parameter asking: whether `ASKING` comes first, for a slot that is being moved to this server.
    func block(
        _ command: BlockingCommand, timeout: Duration?, asking: Bool,
        giveBack: @escaping @Sendable (RESPValue) async -> Void
    ) async throws(RedisError) -> RESPValue? {
        if let timeout, timeout < .zero {
            throw RedisError(.invalidArgument, "timeout is \(timeout), expected 0 or more")
        }
        if instruments.isDisabled { return try await blockUntilReply(command, timeout, asking, giveBack) }
        return try await instruments.measure(command.command.name) { () async throws(RedisError) -> RESPValue? in
            try await blockUntilReply(command, timeout, asking, giveBack)
        }
    }

    private func blockUntilReply(
        _ command: BlockingCommand, _ timeout: Duration?, _ asking: Bool,
        _ giveBack: @escaping @Sendable (RESPValue) async -> Void
    ) async throws(RedisError) -> RESPValue? {
        let deadline = timeout.map { NIODeadline.now() + TimeAmount($0) } ?? .distantFuture
        while true {
            if Task.isCancelled { throw BlockedWait.Interruption.cancelled.error }
            guard let lane = try await takeLane(until: deadline) else { return nil }
            // The lane carries no other command, so the next one is the one that ASKING counts for.
            if asking { _ = await lane.send(["ASKING"], timeout: link.commandTimeout) }
            switch await attempt(command, on: lane, until: deadline, giveBack: giveBack) {
            case .reply(let reply): return reply
            case .timedOut: return nil
            case .failed(let error): throw error.naming(command.command.name)
            case .again:
                if NIODeadline.now() >= deadline { return nil }
            }
        }
    }

    /// Returns a lane, retrying while the server cannot be reached, or `nil` when the time is up.
    private func takeLane(until deadline: NIODeadline) async throws(RedisError) -> RedisConnection? {
        var backoff = Backoff(configuration.reconnectDelay)
        while true {
            do {
                return try await lanes.take(.lane)
            } catch {
                guard error.isTransient, !isRetired else { throw error }
                let left = deadline - .now()
                guard left > .nanoseconds(0) else { return nil }
                do {
                    try await Task.sleep(for: min(backoff.next(), .nanoseconds(left.nanoseconds)))
                } catch {
                    throw RedisError(.cancelled, "the task was cancelled")
                }
            }
        }
    }

    private enum Attempt {
        case reply(RESPValue)
        case timedOut
        /// Nothing was taken and there is time left.
        case again
        case failed(RedisError)
    }

    private func attempt(
        _ command: BlockingCommand, on lane: RedisConnection, until deadline: NIODeadline,
        giveBack: @escaping @Sendable (RESPValue) async -> Void
    ) async -> Attempt {
        let interruptibleID = lane.login.interruptibleID
        let wait = BlockedWait(lane: lane, interruptibleID: interruptibleID, node: self)
        let request = command.complete(serverTimeout: serverTimeout(until: deadline, sliced: interruptibleID == nil))
        lanes.began(wait)
        defer { lanes.ended(wait) }
        // Without the right to interrupt the command, only the server's own timeout ends it.
        let timer =
            deadline < .distantFuture && interruptibleID != nil
            ? lane.eventLoop.scheduleTask(deadline: deadline) { wait.interrupt(.timedOut) } : nil
        let result = await withTaskCancellationHandler {
            await lane.sendUninterrupted(request, id: wait.id) { late in
                // The caller has its error already, and the interruption still owns the lane. Registered again, so that
                // a shutdown waits until what the reply brought has been given back.
                self.lanes.began(wait)
                _ = wait.finish()
                Task {
                    if Self.holdsSomething(late) { await self.undo(late, command, giveBack) }
                    self.lanes.ended(wait)
                }
            }
        } onCancel: {
            wait.interrupt(.cancelled)
        }
        timer?.cancel()
        return await conclude(result, wait, lane, command, deadline, giveBack)
    }

    private func conclude(
        _ result: Result<RESPValue, RedisError>, _ wait: BlockedWait, _ lane: RedisConnection,
        _ command: BlockingCommand, _ deadline: NIODeadline, _ giveBack: @escaping @Sendable (RESPValue) async -> Void
    ) async -> Attempt {
        if case .failure(let error) = result, error.code == .cancelled {
            // The interruption has let the caller return, and continues to settle the command: see
            // BlockedWait.unblockAndReturnLane.
            var error = wait.interruption?.error ?? error
            error.mayHaveRun = true
            error.message += "; the server did not answer in time, and what it may have taken will be given back"
            return wait.interruption == .timedOut ? .timedOut : .failed(error)
        }
        let isMine = wait.finish()
        let interruption = wait.interruption
        switch result {
        case .success(let reply):
            if isMine { lanes.put(lane) }
            if let message = reply.errorMessage { return failure(message, interruption) }
            guard Self.holdsSomething(reply) else {
                switch interruption {
                case .timedOut: return .timedOut
                case let other?: return .failed(other.error)
                case nil: return .again
                }
            }
            // A reply that arrives just when the time is up is still delivered. A cancelled caller must not receive it.
            guard let interruption, interruption != .timedOut else { return .reply(reply) }
            await Task { await undo(reply, command, giveBack) }.value
            return .failed(interruption.error)
        case .failure(let error):
            if isMine { lanes.drop(lane) }
            if interruption == .stopped { return .failed(BlockedWait.Interruption.stopped.error) }
            return error.mayHaveRun ? .failed(error) : .again
        }
    }

    private func failure(_ message: String, _ interruption: BlockedWait.Interruption?) -> Attempt {
        // The server became a replica during the wait; nothing was taken.
        if message.hasPrefix("UNBLOCKED"), interruption == nil { return .again }
        if let interruption, message.hasPrefix("UNBLOCKED") {
            return interruption == .timedOut ? .timedOut : .failed(interruption.error)
        }
        return .failed(RedisError(serverMessage: message))
    }

    private func undo(
        _ reply: RESPValue, _ command: BlockingCommand, _ giveBack: @Sendable (RESPValue) async -> Void
    ) async {
        await giveBack(reply)
        instruments.gaveBack(command.command.name)
    }

    private static func holdsSomething(_ reply: RESPValue) -> Bool {
        !reply.isNull && reply.errorMessage == nil
    }

    private func serverTimeout(until deadline: NIODeadline, sliced: Bool) -> Duration? {
        let left: Duration? =
            deadline == .distantFuture ? nil : .nanoseconds(max(0, (deadline - .now()).nanoseconds))
        guard sliced else { return left }
        return min(left ?? configuration.blockingSlice, configuration.blockingSlice)
    }
}
