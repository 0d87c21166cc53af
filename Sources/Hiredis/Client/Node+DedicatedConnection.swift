// A connection that one caller has for itself.
import NIOConcurrencyHelpers
import NIOCore

extension Node {
    /// Calls `body` with a connection that nobody else uses meanwhile: see
    /// ``Redis/withDedicatedConnection(timeout:_:)``.
    func withDedicatedConnection<Value>(
        timeout: Duration?, _ body: (DedicatedConnection) async throws -> Value
    ) async throws -> Value {
        let use = LaneUse(lane: try await lanes.take(.dedicated), instruments: instruments)
        let limit = timeout.map { TimeAmount($0) } ?? link.commandTimeout
        let timer = use.lane.eventLoop.scheduleTask(deadline: .now() + limit) {
            use.abort(RedisError(.timedOut, "the time limit of the dedicated connection has passed"))
        }
        defer {
            timer.cancel()
            if use.end() { lanes.put(use.lane) } else { lanes.drop(use.lane) }
        }
        return try await withTaskCancellationHandler {
            do {
                return try await body(
                    DedicatedConnection { commands throws(RedisError) in try await use.send(commands) })
            } catch {
                use.failed()
                throw error
            }
        } onCancel: {
            use.abort(RedisError(.cancelled, "the task was cancelled"))
        }
    }
}

/// The use of a lane in one scope. It decides whether the lane can be used again afterwards.
final class LaneUse: Sendable {
    private struct State {
        var isOver = false
        /// Pipelines that have no reply yet and keep the connection busy.
        var inFlight = 0
        /// The connection is closed, or may be busy with commands whose replies are not read.
        var isSpent = false
    }

    let lane: RedisConnection
    private let instruments: Instruments
    private let state = NIOLockedValueBox(State())

    init(lane: RedisConnection, instruments: Instruments) {
        self.lane = lane
        self.instruments = instruments
    }

    func send(_ commands: [RedisCommand]) async throws(RedisError) -> [RESPValue] {
        let isOver = state.withLockedValue { state in
            if !state.isOver { state.inFlight += 1 }
            return state.isOver
        }
        if isOver { throw RedisError(.invalidArgument, "the dedicated connection was used after the end of its scope") }
        return try await instruments.measure("PIPELINE", size: commands.count) { () async throws(RedisError) in
            // The timer of the scope is its time limit.
            let result = await lane.send(pipeline: commands, timeout: nil)
            state.withLockedValue { state in
                state.inFlight -= 1
                if case .failure = result { state.isSpent = true }
            }
            return try result.get().array ?? []
        }
    }

    /// Marks the connection as one that cannot be used again.
    func failed() { state.withLockedValue { $0.isSpent = true } }

    /// Closes the connection, unless the scope has ended: another caller may use the connection
    /// then.
    func abort(_ reason: RedisError) {
        let isMine = state.withLockedValue { state in
            state.isSpent = true
            return !state.isOver
        }
        if isMine { lane.closeSoon(reason) }
    }

    /// Ends the scope.
    ///
    /// - Returns: whether the connection can be used again.
    func end() -> Bool {
        state.withLockedValue { state in
            state.isOver = true
            return !state.isSpent && state.inFlight == 0
        }
    }
}
