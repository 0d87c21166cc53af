// The scripts of a matchmaker with the keys and arguments that all have in common.
import CoordinationBase
import Hiredis

/// What the scripts of a node have in common.
struct MatchRequests: Sendable {
    let keys: [String]
    let configuration: MatchmakerConfiguration
    /// Identifies the node: 16 characters.
    let node: String

    /// The arguments of a script, after those that all have.
    func arguments(_ own: [RedisArgument]) -> [RedisArgument] {
        [
            .string(configuration.rules), .string(randomSessionID()), .string(node),
            .integer(configuration.nodeTTL.wholeMilliseconds),
            .integer(configuration.takeOverAfter.wholeMilliseconds),
            .integer(configuration.endedTicketLifetime.wholeMilliseconds),
        ] + own
    }

    /// The own arguments of an enqueue.
    ///
    /// - Parameter timeout: how long the ticket still waits; `nil` for as long as its node lives.
    static func enqueue(_ ticket: EnqueuedTicket, timeout: Duration?) -> [RedisArgument] {
        [
            .string(ticket.id), .string(ticket.player), .integer(ticket.rating), .string(ticket.properties),
            .integer(timeout.map { max(1, $0.wholeMilliseconds) } ?? 0),
        ]
    }

    /// The own arguments of the restoration of an outcome.
    static func restore(_ confirmed: ConfirmedOutcome) -> [RedisArgument] {
        let outcome = confirmed.outcome
        return [.string(outcome.id), .string(outcome.reason), .string(confirmed.properties)]
            + outcome.players.flatMap { [.string($0.ticket), .string($0.name), .integer($0.rating)] }
    }
}
