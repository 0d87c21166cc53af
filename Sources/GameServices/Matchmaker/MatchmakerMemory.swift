// What a node of a matchmaker remembers, to repeat it after a failover.
import CoordinationBase
import Hiredis

/// What Redis has told a node about tickets.
///
/// On each new connection, before the client gives it to anybody else, the node compares it with what Redis has, and repeats
/// what is missing.
final class MatchmakerMemory: Sendable {
    typealias Confirmations = ConfirmationMemory<ConfirmedTickets>

    let redis: any EventLoopRedis
    let requests: MatchRequests
    let clock: MonotonicClock
    let timer: TickTimer
    let instruments: MatchmakerInstruments
    let confirmations: Confirmations

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
        confirmations = Confirmations(
            ConfirmedTickets(maxAge: configuration.repairTime, maxBytes: configuration.repairBytes), redis: redis,
            key: requests.keys[0], clock: clock)
    }

    /// A call begins.
    func begin() -> Confirmations.Call { confirmations.begin(repair: { [weak self] in await self?.repair(on: $0) }) }

    /// A call has ended.
    func end() { confirmations.end() }

    /// Remembers what a call was told.
    ///
    /// - Returns: `false` if the request must be repeated: see ``ConfirmationMemory/confirm(_:_:)``.
    func confirm(_ kinds: [ConfirmedTicket.Kind], of call: Confirmations.Call) -> Bool {
        confirmations.confirm(call) { tickets, now in for kind in kinds { tickets.append(kind, at: now) } }
    }

    /// The properties of the tickets of an outcome, if one of them is known; otherwise none.
    func properties(of outcome: TicketOutcome) -> String {
        let tickets = outcome.players.map(\.ticket)
        return confirmations.withLog { log in
            log.changes.last { $0.waiting.map { tickets.contains($0.id) } ?? false }?.waiting?.properties
                ?? ""
        }
    }

    /// Reports what cannot be repeated.
    func reportLoss(_ count: Int) {
        confirmations.withLog { $0.lossCount += count }
        instruments.lost(count)
    }
}
