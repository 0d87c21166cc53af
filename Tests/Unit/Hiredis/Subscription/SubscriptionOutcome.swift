import TestSupport

@testable import Hiredis
@testable import HiredisTestSupport

/// The machine's actions for one reply or several, in one form, so that tests can add them up.
struct SubscriptionOutcome {
    var completed: [ListenerStateMachine.JoinID] = []
    var failed: [(ListenerStateMachine.JoinID, RedisError)] = []
    var gaps: [Listener] = []
    var ended: [(Listener, RedisError)] = []
    var commands: [ListenerStateMachine.Command] = []
    var isUnexpected = false

    mutating func add(_ other: Self) {
        completed += other.completed
        failed += other.failed
        gaps += other.gaps
        ended += other.ended
        commands += other.commands
        isUnexpected = isUnexpected || other.isUnexpected
    }
}

extension ListenerStateMachine {
    mutating func received(_ reply: SubscriptionReply) -> SubscriptionOutcome {
        var outcome = SubscriptionOutcome()
        switch reply {
        case .confirmed(let subscribe, let topic):
            switch confirmed(subscribe: subscribe, topic) {
            case .confirm(let confirmation):
                (outcome.completed, outcome.gaps) = (confirmation.completed, confirmation.gaps)
            case .unexpected: outcome.isUnexpected = true
            }
        case .pong:
            if case .unexpected = pong() { outcome.isUnexpected = true }
        case .error(let message):
            switch refused(message) {
            case .refuse(let refusal):
                (outcome.completed, outcome.gaps) = (refusal.confirmation.completed, refusal.confirmation.gaps)
                (outcome.failed, outcome.ended, outcome.commands) = (refusal.failed, refusal.ended, refusal.commands)
            case .unexpected: outcome.isUnexpected = true
            }
        }
        return outcome
    }
}
