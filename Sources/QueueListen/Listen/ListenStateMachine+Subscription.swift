// The process's channel: whether hints arrive on it, and what they report.
import CoordinationBase

extension ListenStateMachine {
    // MARK: The subscription changes

    enum SubscriptionAction: Sendable {
        case read(Read)
        case check([Check])
    }

    /// The server has confirmed the subscription, or it is not possible at present.
    mutating func subscriptionChanged(_ generation: Int, isSubscribed: Bool, now: Duration) -> [SubscriptionAction] {
        guard let status = subscription?.status, subscription?.generation == generation else { return [] }
        subscription?.status = isSubscribed ? .active : .unavailable
        let subscribing = calls { if case .subscribing = $0.state { true } else { false } }
        var actions: [SubscriptionAction] = subscribing.compactMap { startRead($0).map { .read($0) } }
        if status == .unavailable, isSubscribed, let checks = checkMissedHints() { actions.append(.check(checks)) }
        if !calls.isEmpty { recheckAt = now + checkInterval }
        return actions
    }

    // MARK: Hints are missed

    enum GapAction: Sendable {
        case none
        case check([Check])
    }

    /// The subscription was interrupted and is active again.
    mutating func gap(_ generation: Int) -> GapAction {
        guard subscription?.generation == generation else { return .none }
        return checkMissedHints().map { .check($0) } ?? .none
    }

    /// The connection for commands is new: it may lead to another server, which may not know that this process wants to be
    /// notified.
    mutating func reconnected() -> GapAction {
        guard subscription != nil else { return .none }
        return checkMissedHints().map { .check($0) } ?? .none
    }

    /// Checks all calls after hints may have been missed.
    private mutating func checkMissedHints() -> [Check]? {
        for call in calls.values { if case .reading = call.state { call.state = .reading(.unknownChange) } }
        return startSweep(afterGap: true)
    }

    // MARK: Hints arrive

    enum HintAction: Sendable {
        case read(Read)
        case finish(ID, Outcome)
    }

    mutating func hintsArrived(_ generation: Int, _ hints: [MailHint], now: Duration) -> [HintAction] {
        guard subscription?.generation == generation else { return [] }
        return hints.flatMap { hint in calls(for: hint.mailbox).compactMap { receive(hint, $0, now) } }
    }

    private mutating func receive(_ hint: MailHint, _ call: PendingListen, _ now: Duration) -> HintAction? {
        switch call.state {
        case .waiting:
            switch resume(call, with: hasMissedHints ? .unknownChange : .hint(hint), isFresh: true, now) {
            case .none: return nil
            case .read(let read): return .read(read)
            case .finish(let outcome): return .finish(call.id, outcome)
            }
        case .reading(.unknownChange): return nil
        case .reading:
            // The last of several hints counts: it was sent last.
            call.state = .reading(hint.growth == nil ? .unknownChange : .hint(hint))
            return nil
        case .subscribing, .queued, .pausing: return nil
        }
    }

    /// The calls that fulfil a condition, the oldest first.
    func calls(where condition: (PendingListen) -> Bool) -> [PendingListen] {
        calls.values.filter(condition).sorted { $0.id < $1.id }
    }
}
