// What a node of a matchmaker remembers, to repeat it after a failover.
import CoordinationBase
import Hiredis

/// What Redis has told a node about tickets.
///
/// On each new connection, before the client gives it to anybody else, the node compares it with what Redis has, and repeats
/// what is missing.
final class MatchmakerMemory: Sendable {
    /// A call whose answer is to be remembered.
    struct Call: Sendable {
        fileprivate let comparisonCount: Int
        let began: Duration
    }

    struct State {
        var tickets: ConfirmedTickets
        /// Beginnings and ends of comparisons.
        var comparisonCount = 0
        var calls = 0
        /// The largest number of calls that were under way at once.
        var maxCalls = 0
        /// The number of losses that were reported.
        var lossCount = 0
        fileprivate var isRegistered = false
        fileprivate var stop: (@Sendable () -> Void)?
    }

    let redis: any EventLoopRedis
    let requests: MatchRequests
    let clock: MonotonicClock
    let timer: TickTimer
    let instruments: MatchmakerInstruments
    let state: Locked<State>

    /// - Returns: `nil` if nothing is to be repeated, or this Redis does not report new connections.
    init?(
        redis: any Redis, requests: MatchRequests, clock: MonotonicClock, timer: TickTimer,
        instruments: MatchmakerInstruments
    ) {
        let configuration = requests.configuration
        guard let redis = redis as? any EventLoopRedis, configuration.repairTime > .zero, configuration.repairBytes > 0
        else { return nil }
        (self.redis, self.requests, self.clock, self.timer) = (redis, requests, clock, timer)
        self.instruments = instruments
        state = Locked(
            State(tickets: ConfirmedTickets(maxAge: configuration.repairTime, maxBytes: configuration.repairBytes)))
    }

    deinit { state.withLock { $0.stop }?() }

    /// A call begins.
    func begin() -> Call {
        let began = clock.now()
        return state.withLock { state in
            if !state.isRegistered {
                // Before the first request, so that no connection on which it may be confirmed is missed.
                state.isRegistered = true
                state.stop = redis.sendFirst(for: requests.keys[0]) { [weak self] connection in
                    await self?.repair(on: connection)
                }
            }
            state.calls += 1
            state.maxCalls = max(state.maxCalls, state.calls)
            return Call(comparisonCount: state.comparisonCount, began: began)
        }
    }

    /// A call has ended.
    func end() { state.withLock { $0.calls -= 1 } }

    /// Remembers what a call was told.
    ///
    /// - Returns: `false` if a connection was compared since the call began. Then the answer may be that of the former server.
    func confirm(_ kinds: [ConfirmedTicket.Kind], of call: Call) -> Bool {
        let now = clock.now()
        return state.withLock { state in
            guard state.comparisonCount == call.comparisonCount else { return false }
            for kind in kinds { state.tickets.append(kind, at: now) }
            return true
        }
    }

    /// The properties of the tickets of an outcome, if one of them is known; otherwise none.
    func properties(of outcome: TicketOutcome) -> String {
        let tickets = outcome.players.map(\.ticket)
        return state.withLock { state in
            state.tickets.changes.last { $0.waiting.map { tickets.contains($0.id) } ?? false }?.waiting?.properties
                ?? ""
        }
    }

    /// Reports what cannot be repeated.
    func reportLoss(_ count: Int) {
        state.withLock { $0.lossCount += count }
        instruments.lost(count)
    }
}
