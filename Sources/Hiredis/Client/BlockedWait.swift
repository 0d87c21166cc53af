// One blocking command under way on a lane, and its interruption by cancel, timeout or shutdown.
//
// An element that the server has popped for us must never be lost, so a wait is not simply abandoned: the server is told
// to end it (CLIENT UNBLOCK, from the command connection), and then its reply is read. Nothing popped: nil. Something
// popped after all: the caller gets it, or it is given back. UNBLOCK may arrive before the blocking command itself, so it
// is repeated until the reply is there. The lane goes back to the pool only when no UNBLOCK can hit it any more.
import NIOCore
import NIOConcurrencyHelpers

final class BlockedWait: Sendable {
    enum Interruption: Sendable {
        case cancelled, timedOut, stopped

        var error: RedisError {
            switch self {
            case .cancelled: RedisError(.cancelled, "the task was cancelled")
            case .timedOut: RedisError(.timedOut, "the time was up")
            case .stopped: RedisError(.clientStopped, "the client is stopping")
            }
        }
    }

    private struct State {
        var interruption: Interruption?
        /// The reply is there, or the lane has ended.
        var isOver = false
        /// The lane belongs to the interruption, which returns it when it is through.
        var isInterrupting = false
    }

    let id = RedisConnection.makeID()
    private let lane: RedisConnection
    private let interruptibleID: Int?
    private let client: RedisClient
    private let state = NIOLockedValueBox(State())

    init(lane: RedisConnection, interruptibleID: Int?, client: RedisClient) {
        self.lane = lane
        self.interruptibleID = interruptibleID
        self.client = client
    }

    var interruption: Interruption? { state.withLockedValue { $0.interruption } }

    // MARK: Interrupt

    /// Ends the wait. The first reason counts; nothing happens when it is over already.
    func interrupt(_ reason: Interruption) {
        let isFirst = state.withLockedValue { state in
            guard !state.isOver, state.interruption == nil else { return false }
            state.interruption = reason
            state.isInterrupting = true
            return true
        }
        if isFirst { Task { await release() } }
    }

    /// Ends the wait without asking the server: the client stops at once.
    func abort() {
        state.withLockedValue { $0.interruption = $0.interruption ?? .stopped }
        lane.closeSoon(RedisError(.clientStopped, "the client has stopped"))
    }

    /// The reply is there, or the lane has ended.
    ///
    /// - Returns: whether the lane is the caller's to return. Otherwise the interruption under way returns it.
    func finish() -> Bool {
        state.withLockedValue { state in
            state.isOver = true
            return !state.isInterrupting
        }
    }

    private var isOver: Bool { state.withLockedValue { $0.isOver } }

    /// Makes the server answer, and returns the lane when nothing can hit it any more.
    private func release() async {
        let deadline = NIODeadline.now() + TimeAmount(client.configuration.settleTimeout)
        var isClean = true
        var pause = Duration.milliseconds(1)
        var hasLetGo = false
        while !isOver, !lane.isClosed {
            let now = NIODeadline.now()
            if now >= deadline + TimeAmount(client.configuration.silenceLimit) {
                lane.closeSoon(RedisError(.connectionLost, "an interrupted blocking command is not answered"))
                break
            }
            if now >= deadline, !hasLetGo {
                // The caller has waited long enough; whatever comes is settled without it.
                lane.cancel(id)
                hasLetGo = true
            }
            if let interruptibleID { isClean = await unblock(interruptibleID) && isClean }
            if isOver { break }
            try? await Task.sleep(for: pause)
            pause = min(pause * 2, .milliseconds(hasLetGo ? 1000 : 50))
        }
        if isClean, !lane.isClosed { client.lanes.put(lane) } else { client.lanes.drop(lane) }
    }

    /// - Returns: whether it is known that no UNBLOCK is under way any more.
    private func unblock(_ id: Int) async -> Bool {
        do {
            _ = try await client.exchange(["CLIENT", "UNBLOCK", .integer(id)], timeout: .seconds(1))
            return true
        } catch {
            if error.code == .notPermitted {
                // The user's rights have changed. Closing is all that is left; the server's timeout ends the rest.
                lane.closeSoon(RedisError(.notPermitted, "CLIENT UNBLOCK is not permitted any more: \(error.message)"))
            }
            if error.code == .clientStopped { lane.closeSoon(error) }
            return !error.mayHaveRun
        }
    }
}
