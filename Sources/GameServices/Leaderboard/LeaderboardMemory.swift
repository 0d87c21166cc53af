// What the handles of a leaderboard remember, to repeat it after a failover.
import CoordinationBase
import Hiredis

/// The confirmed changes of a leaderboard by one handle and its copies.
///
/// On each new connection, before the client gives it to anybody else, it compares them with what Redis has, and repeats
/// what is missing.
final class LeaderboardMemory: Sendable {
    /// A call that may change the leaderboard.
    struct Call: Sendable {
        fileprivate let comparisonCount: Int
        /// Changes that were confirmed before have lower numbers.
        fileprivate let number: UInt64
        let began: Duration
    }

    struct State {
        var changes: ConfirmedChanges
        /// Beginnings and ends of comparisons.
        var comparisonCount = 0
        var calls = 0
        /// The largest number of calls that were under way at once.
        var maxCalls = 0
        fileprivate var isRegistered = false
        fileprivate var stop: (@Sendable () -> Void)?
    }

    let redis: any EventLoopRedis
    let keys: ServiceKeys
    let configuration: LeaderboardConfiguration
    let clock: MonotonicClock
    let instruments: LeaderboardInstruments
    let state: Locked<State>

    /// - Returns: `nil` if nothing is to be repeated, or this Redis does not report new connections.
    init?(
        redis: any Redis, keys: ServiceKeys, configuration: LeaderboardConfiguration, clock: MonotonicClock,
        instruments: LeaderboardInstruments
    ) {
        guard let redis = redis as? any EventLoopRedis, configuration.repairTime > .zero, configuration.repairBytes > 0
        else { return nil }
        self.redis = redis
        self.keys = keys
        self.configuration = configuration
        self.clock = clock
        self.instruments = instruments
        state = Locked(
            State(changes: ConfirmedChanges(maxAge: configuration.repairTime, maxBytes: configuration.repairBytes)))
    }

    deinit { state.withLock { $0.stop }?() }

    // MARK: Calls

    /// A call begins.
    func begin() -> Call {
        let began = clock.now()
        return state.withLock { state in
            if !state.isRegistered {
                // Before the first request, so that no connection on which it may be confirmed is missed.
                state.isRegistered = true
                state.stop = redis.sendFirst(for: keys.key("meta")) { [weak self] connection in
                    await self?.repair(on: connection)
                }
            }
            state.calls += 1
            state.maxCalls = max(state.maxCalls, state.calls)
            return Call(comparisonCount: state.comparisonCount, number: state.changes.nextNumber, began: began)
        }
    }

    /// A call has ended.
    func end() { state.withLock { $0.calls -= 1 } }

    /// Remembers a change that Redis has confirmed.
    ///
    /// - Returns: `false` if a connection was compared since the call began. Then the confirmation may be that of the former
    ///   server, and the request must be repeated.
    func confirm(_ kind: ConfirmedChange.Kind, of call: Call) -> Bool {
        let now = clock.now()
        return state.withLock { state in
            guard state.comparisonCount == call.comparisonCount else { return false }
            switch kind {
            case .submit(let submit): state.changes.append(submit, at: now)
            case .removal(let removal): state.changes.insert(removal, begun: call.number, at: now)
            }
            return true
        }
    }

    /// Forgets all changes, because the leaderboard was deleted.
    func forgetAll() { state.withLock { $0.changes.removeAll() } }
}
