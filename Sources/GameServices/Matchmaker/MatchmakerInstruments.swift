import CoordinationBase
import Hiredis

#if LoggingSupport
    import Logging
#endif
#if MetricsSupport
    import CoreMetrics
#endif

/// The logs and metrics of matchmakers. Does nothing where a trait is disabled or no backend was
/// bootstrapped. Names of players are never included.
struct MatchmakerInstruments: Sendable {
    #if LoggingSupport
        private let logger: Logger?
    #endif
    #if MetricsSupport
        private let tickets: Counter?
        private let matches: Counter?
        private let ended: Counter?
        private let givenUp: Counter?
        private let repaired: Counter?
        private let lost: Counter?
    #endif

    init(_ instruments: RedisInstruments) {
        let backends = Backends(instruments)
        #if LoggingSupport
            logger = backends.logger
        #endif
        #if MetricsSupport
            func counter(_ label: String) -> Counter? {
                backends.metrics.map { Counter(label: label, factory: $0) }
            }
            tickets = counter("matchmaker_tickets")
            matches = counter("matchmaker_matches")
            ended = counter("matchmaker_ended")
            givenUp = counter("matchmaker_given_up")
            repaired = counter("matchmaker_repaired")
            lost = counter("matchmaker_lost")
        #endif
    }

    func enqueued() {
        #if MetricsSupport
            tickets?.increment()
        #endif
    }

    /// Records that an outcome was sent to its players.
    func recordNotified(_ outcome: TicketOutcome) {
        #if MetricsSupport
            (outcome.reason == "matched" ? matches : ended)?.increment()
        #endif
    }

    /// Records that outcomes could not be sent for as long as their tickets are remembered.
    func gaveUp(_ count: Int) {
        guard count > 0 else { return }
        #if MetricsSupport
            givenUp?.increment(by: count)
        #endif
        #if LoggingSupport
            logger?.error("gave up outcomes that could not be sent", metadata: ["matchmaker_outcomes": "\(count)"])
        #endif
    }

    /// Records that tickets and their ends were restored which Redis had confirmed and lost.
    func repaired(_ count: Int) {
        guard count > 0 else { return }
        #if MetricsSupport
            repaired?.increment(by: count)
        #endif
        #if LoggingSupport
            logger?.notice("restored tickets that Redis had lost", metadata: ["matchmaker_tickets": "\(count)"])
        #endif
    }

    /// Records that Redis has lost tickets or their ends, and has something else in their place.
    func lost(_ count: Int) {
        guard count > 0 else { return }
        #if MetricsSupport
            lost?.increment(by: count)
        #endif
        #if LoggingSupport
            logger?.error(
                "Redis has lost tickets or matches that cannot be restored",
                metadata: ["matchmaker_tickets": "\(count)"])
        #endif
    }

    /// Records that an outcome could not be sent now and will be retried by any node.
    func cannotTell(_ code: String) {
        #if LoggingSupport
            logger?.warning("cannot send an outcome, will try again", metadata: ["matchmaker_error": "\(code)"])
        #endif
    }

    /// Records that the work that is due could not be done now.
    func cannotTick(_ error: GameServiceError) {
        #if LoggingSupport
            logger?.warning("cannot widen windows, will try again", metadata: ["matchmaker_error": "\(error.code)"])
        #endif
    }
}
