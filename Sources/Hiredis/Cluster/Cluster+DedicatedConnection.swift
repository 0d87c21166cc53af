// A connection for one caller in a cluster: the first commands decide to which server it leads.
import NIOConcurrencyHelpers
import NIOCore

extension Cluster {
    /// Calls `body` with a connection to the server that its first commands are for.
    func withDedicatedConnection<Value>(
        timeout: Duration?, _ body: (DedicatedConnection) async throws -> Value
    ) async throws -> Value {
        let choice = LaneChoice(cluster: self, limit: timeout ?? configuration.commandTimeout)
        defer { choice.end() }
        return try await withTaskCancellationHandler {
            do {
                return try await body(
                    DedicatedConnection { commands throws(RedisError) in try await choice.send(commands) })
            } catch {
                choice.failed()
                throw error
            }
        } onCancel: {
            choice.abort(RedisError(.cancelled, "the task was cancelled"))
        }
    }
}

/// A dedicated connection whose server is chosen by the first commands: by the first key among them.
private final class LaneChoice: Sendable {
    private struct State {
        var use: (LaneUse, Node)?
        var timer: Scheduled<Void>?
        var abortion: RedisError?
        var isOver = false
    }

    private let cluster: Cluster
    private let limit: Duration
    private let state = NIOLockedValueBox(State())

    init(cluster: Cluster, limit: Duration) {
        self.cluster = cluster
        self.limit = limit
    }

    func send(_ commands: [RedisCommand]) async throws(RedisError) -> [RESPValue] {
        if let use = state.withLockedValue({ $0.use }) { return try await use.0.send(commands) }
        var slot: Int?
        for command in commands {
            if case .slot(let number) = command.destination {
                slot = number
                break
            }
        }
        var attempts = Cluster.Attempts(deadline: cluster.deadline(limit))
        return try await cluster.routed(slot, &attempts) { node, asking, _ throws(RedisError) in
            let use = try await self.use(of: node)
            let replies = try await use.send(asking ? commands.flatMap { [["ASKING"], $0] } : commands)
            let answers = asking ? replies.enumerated().filter { $0.offset % 2 == 1 }.map(\.element) : replies
            // When the server has refused all commands that have a key, nothing has run.
            let ofKeys = zip(commands, answers).filter { if case .slot = $0.0.destination { true } else { false } }
            let refusals = ofKeys.compactMap { $0.1.errorMessage.map { RedisError(serverMessage: $0) } }
            if let first = refusals.first, refusals.count == ofKeys.count, refusals.allSatisfy({ $0.refusal != nil }) {
                self.release()
                throw first
            }
            return answers
        }
    }

    private func use(of node: Node) async throws(RedisError) -> LaneUse {
        let use = LaneUse(lane: try await node.lanes.take(.dedicated), instruments: cluster.instruments)
        let refused: RedisError? = state.withLockedValue { state in
            if let abortion = state.abortion { return abortion }
            if state.isOver || state.use != nil {
                return RedisError(.invalidArgument, "the first commands of a dedicated connection must be sent alone")
            }
            state.use = (use, node)
            state.timer?.cancel()
            state.timer = cluster.eventLoop.scheduleTask(in: TimeAmount(limit)) {
                self.abort(RedisError(.timedOut, "the time limit of the dedicated connection has passed"))
            }
            return nil
        }
        guard let refused else { return use }
        node.lanes.put(use.lane)
        throw refused
    }

    /// Gives the connection back, because another server is to be used.
    private func release() {
        guard
            let (use, node) = state.withLockedValue({ state in
                defer { state.use = nil }
                return state.use
            })
        else { return }
        if use.end() { node.lanes.put(use.lane) } else { node.lanes.drop(use.lane) }
    }

    func failed() { state.withLockedValue { $0.use }?.0.failed() }

    func abort(_ reason: RedisError) {
        let use = state.withLockedValue { state in
            state.abortion = state.abortion ?? reason
            return state.use
        }
        use?.0.abort(reason)
    }

    func end() {
        let use = state.withLockedValue { state in
            state.isOver = true
            state.timer?.cancel()
            return state.use
        }
        guard let (use, node) = use else { return }
        if use.end() { node.lanes.put(use.lane) } else { node.lanes.drop(use.lane) }
    }
}
