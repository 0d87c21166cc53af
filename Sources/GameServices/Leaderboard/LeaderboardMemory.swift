// What the handles of a leaderboard remember, to repeat it after a failover.
import CoordinationBase
import Hiredis

/// The confirmed changes of a leaderboard by one handle and its copies.
///
/// On each new connection, before the client gives it to anybody else, it compares them with what Redis has, and repeats
/// what is missing.
final class LeaderboardMemory: Sendable {
    typealias Confirmations = ConfirmationMemory<ConfirmedChanges>

    /// A call that may change the leaderboard.
    struct Call: Sendable {
        fileprivate let call: Confirmations.Call
        /// Changes that were confirmed before have lower numbers.
        fileprivate let number: UInt64
        var began: Duration { call.began }
    }

    let redis: any EventLoopRedis
    let keys: ServiceKeys
    let configuration: LeaderboardConfiguration
    let clock: MonotonicClock
    let instruments: LeaderboardInstruments
    let confirmations: Confirmations

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
        confirmations = Confirmations(
            ConfirmedChanges(maxAge: configuration.repairTime, maxBytes: configuration.repairBytes), redis: redis,
            key: keys.key("meta"), clock: clock)
    }

    /// A call begins.
    func begin() -> Call {
        var number: UInt64 = 0
        let call = confirmations.begin(repair: { [weak self] in await self?.repair(on: $0) }) { number = $0.nextNumber }
        return Call(call: call, number: number)
    }

    /// A call has ended.
    func end() { confirmations.end() }

    /// Remembers a change that Redis has confirmed.
    ///
    /// - Returns: `false` if the request must be repeated: see ``ConfirmationMemory/confirm(_:_:)``.
    func confirm(_ kind: ConfirmedChange.Kind, of call: Call) -> Bool {
        confirmations.confirm(call.call) { changes, now in
            switch kind {
            case .submit(let submit): changes.append(submit, at: now)
            case .removal(let removal): changes.insert(removal, begun: call.number, at: now)
            }
        }
    }

    /// Forgets all changes, because the leaderboard was deleted.
    func forgetAll() { confirmations.withLog { $0.removeAll() } }
}
