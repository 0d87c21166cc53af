// Chooses the server for an operation, follows redirects, and waits until the cluster can run it.
import NIOCore

extension Cluster {
    /// The progress of one call, from the first attempt to the last.
    struct Attempts {
        /// The redirects that are followed at once. More are followed with pauses: servers that send the client to each
        /// other agree in a moment, or never.
        static let maxRedirects = 5

        let deadline: NIODeadline
        fileprivate var redirects = 0
        fileprivate var pauses = Backoff(.milliseconds(20)...(.milliseconds(500)))
        /// The server that the last answer named for the next attempt only.
        fileprivate var askNext: RedisConfiguration.Endpoint?

        init(deadline: NIODeadline) { self.deadline = deadline }

        /// The time until the deadline, as far as it can be slept.
        var left: Duration { min(.nanoseconds(max(0, (deadline - .now()).nanoseconds)), .maxSleep) }
        var isOver: Bool { NIODeadline.now() >= deadline }
    }

    func deadline(_ timeout: Duration?) -> NIODeadline {
        .now() + TimeAmount(timeout ?? configuration.commandTimeout)
    }

    /// Carries out an operation on the master of a slot, and again as long as it was certainly not run.
    ///
    /// - Parameter operation: gets the node, and whether the slot is being moved to it, so that the
    ///   command must follow `ASKING`.
    func routed<Value>(
        _ slot: Int?, _ attempts: inout Attempts,
        _ operation: (Node, _ asking: Bool, _ left: Duration) async throws(RedisError) -> Value
    ) async throws(RedisError) -> Value {
        while true {
            if Task.isCancelled { throw RedisError(.cancelled, "the task was cancelled") }
            let asked = attempts.askNext
            attempts.askNext = nil
            let target: Node
            if let asked { target = try node(at: asked) } else { target = try await node(for: slot, attempts) }
            do throws(RedisError) {
                return try await operation(target, asked != nil, attempts.left)
            } catch {
                try await recover(from: error, target, &attempts)
            }
        }
    }

    /// Returns the node of a slot's master, and waits for it while the map does not name one.
    func node(for slot: Int?, _ attempts: Attempts) async throws(RedisError) -> Node {
        if let node = try currentNode(for: slot) { return node }
        var pauses = Backoff(.milliseconds(20)...(.milliseconds(500)))
        var lastError: RedisError?
        while true {
            lastError = await untilDeadline(attempts) { await self.refresh() } ?? lastError
            if let node = try currentNode(for: slot) { return node }
            if Task.isCancelled { throw RedisError(.cancelled, "the task was cancelled") }
            guard !attempts.isOver else {
                let reason = lastError?.message ?? "no server of the cluster serves the slot \(slot ?? 0)"
                throw RedisError(.timedOut, "no server within the deadline: \(reason)", underlying: lastError)
            }
            try? await Task.sleep(for: min(pauses.next(), attempts.left))
        }
    }

    /// Waits for a task that cannot be cancelled, but no longer than until the deadline or the cancellation
    /// of the caller.
    private func untilDeadline<Value: Sendable>(
        _ attempts: Attempts, _ operation: @escaping @Sendable () async -> Value?
    ) async -> Value? {
        await withTaskGroup(of: Value?.self) { group in
            group.addTask {
                try? await abandonable { () async throws(RedisError) in
                    await operation()
                } discard: { _ in
                }
            }
            group.addTask {
                try? await Task.sleep(for: attempts.left)
                return nil
            }
            let first = await group.next() ?? nil
            group.cancelAll()
            return first
        }
    }

    /// Prepares the next attempt after an error that proves that nothing has run; throws all others.
    func recover(
        from error: RedisError, _ node: Node, _ attempts: inout Attempts
    ) async throws(RedisError) {
        if let refusal = error.refusal {
            try await follow(refusal, error, node.configuration.endpoint, &attempts)
        } else if node.isRetired, !error.mayHaveRun, error.code != .cancelled, error.code != .timedOut {
            if attempts.isOver { throw error }
        } else {
            // The server may be unreachable without the connection having noticed.
            if error.code == .timedOut { linkFailed() }
            throw error
        }
    }

    /// Follows a redirect, or waits until the cluster can run the command.
    func follow(
        _ refusal: ClusterRefusal, _ error: RedisError, _ from: Endpoint, _ attempts: inout Attempts
    ) async throws(RedisError) {
        if attempts.isOver { throw error.asNotReady }
        instruments.redirected(refusal)
        if refusal != .notNow { attempts.redirects += 1 }
        switch attempts.redirects > Attempts.maxRedirects ? .notNow : refusal {
        case .moved(let slot, let host, let port):
            let to = endpoint(host, port, from: from)
            _ = await untilDeadline(attempts) { await self.moved(slot: slot, from: from, to: to) }
        case .ask(let host, let port):
            attempts.askNext = endpoint(host, port, from: from)
        case .notNow:
            let pause = attempts.pauses.next()
            // The error says more than that the deadline has passed.
            guard pause < attempts.left else { throw error.asNotReady }
            do { try await Task.sleep(for: pause) } catch {
                throw RedisError(.cancelled, "the task was cancelled")
            }
            _ = await untilDeadline(attempts) { await self.refresh() }
        }
    }
}

extension RedisError {
    /// The reason why a server of a cluster has not run the command; `nil` for all other errors.
    var refusal: ClusterRefusal? {
        guard !mayHaveRun else { return nil }
        switch code {
        case .serverError, .serverNotReady, .readOnly: return ClusterRefusal(message)
        default: return nil
        }
    }

    /// This error as one that may be gone in a moment.
    var asNotReady: RedisError {
        guard code == .serverError else { return self }
        var copy = self
        copy.code = .serverNotReady
        return copy
    }
}
