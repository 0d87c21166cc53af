import NIOConcurrencyHelpers
import NIOCore

/// One blocking command in flight on a lane, and its interruption by cancellation, timeout or
/// shutdown.
///
/// A lane is a connection that carries one caller's commands at a time: see ``LanePool``.
///
/// An element that the server has popped must not be lost, so an interrupted wait is not abandoned.
/// The client asks the server to end it (`CLIENT UNBLOCK` on the command connection) and then reads
/// its reply. If the server popped an element nevertheless, the caller receives it, or it is given
/// back. `CLIENT UNBLOCK` may arrive before the blocking command itself, so it is repeated until
/// the reply arrives. The lane returns to the pool only when no `CLIENT UNBLOCK` can still reach
/// it.
final class BlockedWait: Sendable {
    /// The reason for interrupting a wait.
    enum Interruption: Sendable {
        case cancelled, timedOut, stopped

        var error: RedisError {
            switch self {
            case .cancelled: RedisError(.cancelled, "the task was cancelled")
            case .timedOut: RedisError(.timedOut, "the blocking command timed out")
            case .stopped: RedisError(.clientStopped, "the client is stopping")
            }
        }
    }

    private struct State {
        var interruption: Interruption?
        /// The reply has arrived, or the lane is closed.
        var isOver = false
        /// The interruption owns the lane, and returns it when it has finished.
        var isInterrupting = false
    }

    let id = RedisConnection.makeID()
    private let lane: RedisConnection
    private let interruptibleID: Int?
    private let node: Node
    private let state = NIOLockedValueBox(State())

    init(lane: RedisConnection, interruptibleID: Int?, node: Node) {
        self.lane = lane
        self.interruptibleID = interruptibleID
        self.node = node
    }

    var interruption: Interruption? { state.withLockedValue { $0.interruption } }

    // MARK: Interrupt

    /// Begins to end the wait. Only the first interruption of a wait that is not over has an effect.
    func interrupt(_ reason: Interruption) {
        let isFirst = state.withLockedValue { state in
            guard !state.isOver, state.interruption == nil else { return false }
            state.interruption = reason
            state.isInterrupting = true
            return true
        }
        if isFirst { Task { await unblockAndReturnLane() } }
    }

    /// Ends the wait by closing the lane, for a client that stops immediately.
    func abort() {
        state.withLockedValue { $0.interruption = $0.interruption ?? .stopped }
        lane.closeSoon(RedisError(.clientStopped, "the client has stopped"))
    }

    /// Ends the wait by closing the lane, because its server must not be used any more.
    func disconnect(_ reason: RedisError) { lane.closeSoon(reason) }

    /// Records that the reply has arrived or the lane is closed.
    ///
    /// - Returns: whether the caller must return the lane. Otherwise the interruption in progress
    ///   returns it.
    func finish() -> Bool {
        state.withLockedValue { state in
            state.isOver = true
            return !state.isInterrupting
        }
    }

    private var isOver: Bool { state.withLockedValue { $0.isOver } }

    /// Waits for the end of the command, and returns the lane when no `CLIENT UNBLOCK` can still
    /// reach it.
    ///
    /// With an `interruptibleID` it ends the command on the server by `CLIENT UNBLOCK`. Without one,
    /// the user has no right to do so, and the command ends with the current
    /// ``RedisConfiguration/blockingSlice``.
    private func unblockAndReturnLane() async {
        let deadline = NIODeadline.now() + TimeAmount(node.configuration.settleTimeout)
        var isClean = true
        var pause = Duration.milliseconds(1)
        var callerHasReturned = false
        while !isOver, !lane.isClosed {
            let now = NIODeadline.now()
            if now >= deadline + TimeAmount(node.configuration.silenceLimit) {
                lane.closeSoon(
                    RedisError(.connectionLost, "the server does not reply to an interrupted blocking command"))
                break
            }
            if now >= deadline, !callerHasReturned {
                // The caller returns now; a late reply is settled without it.
                lane.cancel(id)
                callerHasReturned = true
            }
            if let interruptibleID { isClean = await unblock(interruptibleID) && isClean }
            if isOver { break }
            try? await Task.sleep(for: pause)
            pause = min(pause * 2, .milliseconds(callerHasReturned ? 1000 : 50))
        }
        if isClean, !lane.isClosed { node.lanes.put(lane) } else { node.lanes.drop(lane) }
    }

    /// - Returns: whether it is certain that no `CLIENT UNBLOCK` is still in flight.
    private func unblock(_ id: Int) async -> Bool {
        do {
            _ = try await node.link.withConnection(timeout: .seconds(1)) { connection, remaining in
                // On another server the id belongs to somebody else.
                guard connection.endpoint == lane.endpoint, !lane.isClosed else {
                    return .failure(RedisError(.serverNotReady, "the lane leads to another server"))
                }
                return await connection.send(["CLIENT", "UNBLOCK", .integer(id)], timeout: remaining)
            }.orThrow()
            return true
        } catch {
            if error.code == .notPermitted {
                // The user's rights have changed. The lane can only be closed; the server's own timeout ends the wait.
                lane.closeSoon(RedisError(.notPermitted, "CLIENT UNBLOCK is no longer permitted: \(error.message)"))
            }
            if error.code == .clientStopped { lane.closeSoon(error) }
            return !error.mayHaveRun
        }
    }
}
