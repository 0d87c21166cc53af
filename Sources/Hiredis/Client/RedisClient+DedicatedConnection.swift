// Commands on a connection that nobody else uses meanwhile.
import NIOConcurrencyHelpers
import NIOCore

extension RedisClient {
    public func withDedicatedConnection<Value>(
        timeout: Duration?, _ body: (DedicatedConnection) async throws -> Value
    ) async throws -> Value {
        let use = LaneUse(lane: try await lanes.take(), instruments: instruments)
        let limit = timeout.map { TimeAmount($0) } ?? link.commandTimeout
        let timer = use.lane.eventLoop.scheduleTask(deadline: .now() + limit) {
            use.abort(RedisError(.timedOut, "the time for the dedicated connection was up"))
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

/// One scope's use of a lane: whether the lane can be used again afterwards.
private final class LaneUse: Sendable {
    private struct State {
        var isOver = false
        /// Commands without their replies yet. The connection is busy with them.
        var inFlight = 0
        /// The connection may be closed, or busy with something whose reply nobody reads.
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
        if isOver { throw RedisError(.invalidArgument, "a dedicated connection is used after its scope has ended") }
        return try await instruments.measure("PIPELINE", size: commands.count) { () async throws(RedisError) in
            // The scope's timer limits it.
            let result = await lane.send(pipeline: commands, timeout: nil)
            state.withLockedValue { state in
                state.inFlight -= 1
                if case .failure = result { state.isSpent = true }
            }
            return try result.get().array ?? []
        }
    }

    func failed() { state.withLockedValue { $0.isSpent = true } }

    /// Closes the connection, unless the scope has ended and the connection may belong to someone else.
    func abort(_ reason: RedisError) {
        let isMine = state.withLockedValue { state in
            state.isSpent = true
            return !state.isOver
        }
        if isMine { lane.closeSoon(reason) }
    }

    /// - Returns: whether the connection can be used again.
    func end() -> Bool {
        state.withLockedValue { state in
            state.isOver = true
            return !state.isSpent && state.inFlight == 0
        }
    }
}
