import NIOConcurrencyHelpers
import NIOCore

/// The lanes: connections that carry one caller's commands at a time. They are made on demand, kept
/// while they are used, and limited in number.
final class LanePool: Sendable {
    private struct Idle {
        var lane: RedisConnection
        var since: NIODeadline
    }

    private typealias Caller = CheckedContinuation<Result<RedisConnection, RedisError>, Never>

    /// A lane that is being connected.
    private struct Attempt {
        let id: UInt64
        let role: RedisConnection.Role
        /// Who gets the lane; `nil` after the caller was cancelled. Then it is for the next one.
        var caller: (id: UInt64, continuation: Caller)?
    }

    private struct State {
        var idle: [Idle] = []
        var attempts: [Attempt] = []
        /// Lanes that carry a command, are being connected, or settle an interrupted command.
        var inUse = 0
        var waits: [UInt64: BlockedWait] = [:]
        var isStopped = false
        var stopError = RedisError(.clientStopped, "the client has stopped")
        var whenUnused: [CheckedContinuation<Void, Never>] = []

        /// A wait may outlast its lane: it ends when the element that it popped has been given
        /// back.
        var isUnused: Bool { inUse == 0 && waits.isEmpty }

        mutating func takeWhenUnused() -> [CheckedContinuation<Void, Never>] {
            guard isUnused else { return [] }
            defer { whenUnused = [] }
            return whenUnused
        }
    }

    let transport: Transport
    private let instruments: Instruments
    private let state = NIOLockedValueBox(State())
    private var configuration: RedisConfiguration { transport.configuration }

    init(transport: Transport, instruments: Instruments) {
        self.transport = transport
        self.instruments = instruments
    }

    /// For tests: the number of lanes that are in use.
    var inUseCount: Int { state.withLockedValue { $0.inUse } }

    /// For tests: the number of callers that wait for a lane that is being connected.
    var waitingCount: Int { state.withLockedValue { $0.attempts.count { $0.caller != nil } } }

    // MARK: Take and put back

    /// Returns a lane for the caller alone, which must pass it to `put` or `drop`.
    ///
    /// - Parameter role: a lane that was made for a blocking command can also be a dedicated
    ///   connection, and not the other way round.
    /// - Throws: `.tooManyLanes`, `.clientStopped`, `.cancelled`, and what connecting throws.
    func take(_ role: RedisConnection.Role) async throws(RedisError) -> RedisConnection {
        if let idle = takeIdle(role) { return idle }
        let id = RedisConnection.makeID()
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { caller in
                if let refusal = connect(role, for: id, caller) { caller.resume(returning: .failure(refusal)) }
            }
        } onCancel: {
            cancel(id)
        }
        return try result.get()
    }

    private func takeIdle(_ role: RedisConnection.Role) -> RedisConnection? {
        state.withLockedValue { state in
            guard !state.isStopped, state.inUse < configuration.maxLanes else { return nil }
            while let index = state.idle.lastIndex(where: { role == .dedicated || $0.lane.role == role }) {
                let lane = state.idle.remove(at: index).lane
                if lane.isClosed { continue }
                state.inUse += 1
                instruments.lanesInUse(state.inUse)
                return lane
            }
            return nil
        }
    }

    /// Lets a caller wait for a lane that is being connected for nobody, or for a new one. So callers that are cancelled one
    /// after the other while the server is slow cost one connection, and not one each.
    ///
    /// - Returns: the reason not to.
    private func connect(_ role: RedisConnection.Role, for id: UInt64, _ caller: Caller) -> RedisError? {
        let limit = configuration.maxLanes
        return state.withLockedValue { state -> RedisError? in
            // A cancellation from here on finds the caller.
            if Task.isCancelled { return RedisError(.cancelled, "the task was cancelled") }
            if state.isStopped { return state.stopError }
            if let index = state.attempts.firstIndex(where: { $0.caller == nil && $0.role == role }) {
                state.attempts[index].caller = (id, caller)
                return nil
            }
            guard state.inUse < limit else {
                return RedisError(
                    .tooManyLanes,
                    "all \(limit) lanes are in use by blocking commands and dedicated connections; raise maxLanes")
            }
            state.inUse += 1
            instruments.lanesInUse(state.inUse)
            state.attempts.append(Attempt(id: id, role: role, caller: (id, caller)))
            Task { [transport] in
                do throws(RedisError) {
                    ended(id, .success(try await RedisConnection.connect(transport, role: role)))
                } catch { ended(id, .failure(error)) }
            }
            return nil
        }
    }

    /// A lane was connected, or could not be.
    private func ended(_ id: UInt64, _ result: Result<RedisConnection, RedisError>) {
        let caller = state.withLockedValue { state in
            state.attempts.remove(at: state.attempts.firstIndex { $0.id == id }!).caller
        }
        switch result {
        case .success(let lane): if caller == nil { put(lane) }
        case .failure: release()
        }
        caller?.continuation.resume(returning: result)
    }

    /// Lets a caller that waits for a lane return. The lane is then for the next one.
    private func cancel(_ id: UInt64) {
        let caller = state.withLockedValue { state -> Caller? in
            guard let index = state.attempts.firstIndex(where: { $0.caller?.id == id }) else { return nil }
            defer { state.attempts[index].caller = nil }
            return state.attempts[index].caller?.continuation
        }
        caller?.resume(returning: .failure(RedisError(.cancelled, "the task was cancelled")))
    }

    /// Returns a lane to the pool.
    func put(_ lane: RedisConnection) {
        let isKept = state.withLockedValue { state in
            guard !state.isStopped, !lane.isClosed else { return false }
            state.idle.append(Idle(lane: lane, since: .now()))
            return true
        }
        if isKept { release() } else { drop(lane) }
    }

    /// Closes a lane that cannot be used again.
    func drop(_ lane: RedisConnection) {
        lane.closeSoon(RedisError(.clientStopped, "the lane is no longer needed"))
        release()
    }

    private func release() {
        let continuations = state.withLockedValue { state in
            state.inUse -= 1
            // With the lock: the gauge must show the last change last.
            instruments.lanesInUse(state.inUse)
            return state.takeWhenUnused()
        }
        for continuation in continuations { continuation.resume() }
    }

    // MARK: Waits in progress, which a shutdown interrupts

    func began(_ wait: BlockedWait) {
        let isStopped = state.withLockedValue { state in
            state.waits[wait.id] = wait
            return state.isStopped
        }
        if isStopped { wait.interrupt(.stopped) }
    }

    func ended(_ wait: BlockedWait) {
        let continuations = state.withLockedValue { state in
            state.waits[wait.id] = nil
            return state.takeWhenUnused()
        }
        for continuation in continuations { continuation.resume() }
    }

    // MARK: Run and stop

    /// Closes lanes that have been idle for `laneIdleTimeout`, until the task is cancelled.
    func run() async {
        let limit = TimeAmount(configuration.laneIdleTimeout)
        while !Task.isCancelled {
            try? await Task.sleep(for: min(configuration.laneIdleTimeout / 2, .seconds(3600)))
            let now = NIODeadline.now()
            let old = state.withLockedValue { state in
                let old = state.idle.filter { $0.since + limit <= now }
                state.idle.removeAll { $0.since + limit <= now }
                return old
            }
            for idle in old { idle.lane.closeSoon(RedisError(.clientStopped, "the lane was idle")) }
        }
    }

    /// Refuses new work with an error, and closes the lanes that are still in use after a time.
    func retire(after grace: Duration, _ error: RedisError) async {
        let idle = state.withLockedValue { state in
            state.isStopped = true
            state.stopError = error
            defer { state.idle = [] }
            return state.idle
        }
        for idle in idle { idle.lane.closeSoon(error) }
        transport.eventLoop.scheduleTask(in: TimeAmount(grace)) { [self] in
            for wait in state.withLockedValue({ $0.waits }).values { wait.disconnect(error) }
        }
    }

    /// Refuses new work and interrupts all waits. With `settling` it waits until each has been
    /// settled with the server, for at most `settleTimeout`.
    func stop(settling: Bool) async {
        let (idle, waits) = state.withLockedValue { state in
            state.isStopped = true
            defer { state.idle = [] }
            return (state.idle, state.waits)
        }
        for idle in idle { idle.lane.closeSoon(RedisError(.clientStopped, "the client has stopped")) }
        for wait in waits.values { if settling { wait.interrupt(.stopped) } else { wait.abort() } }
        guard settling else { return }
        let timer = transport.eventLoop.scheduleTask(in: TimeAmount(configuration.settleTimeout)) { [self] in
            let continuations = state.withLockedValue { state in
                defer { state.whenUnused = [] }
                return state.whenUnused
            }
            for continuation in continuations { continuation.resume() }
        }
        await withCheckedContinuation { continuation in
            let isUnused = state.withLockedValue { state in
                if !state.isUnused { state.whenUnused.append(continuation) }
                return state.isUnused
            }
            if isUnused { continuation.resume() }
        }
        timer.cancel()
    }
}
