// The process's channel: whether wake-ups arrive on it, and what they report.
import CoordinationBase

extension ListenStateMachine {
    // MARK: The subscription changes

    /// The server has confirmed the subscription, or it is not possible at present.
    mutating func subscriptionChanged(_ generation: Int, isSubscribed: Bool, now: Duration) -> [CheckAction] {
        guard let status = subscription?.status, subscription?.generation == generation else { return [] }
        subscription?.status = isSubscribed ? .active : .unavailable
        let subscribing = calls { if case .subscribing = $0.state { true } else { false } }
        var actions: [CheckAction] = subscribing.compactMap { startRead($0).map { .read($0) } }
        if status == .unavailable, isSubscribed, let checks = checkMissedWakeUps() { actions.append(.check(checks)) }
        if !calls.isEmpty { recheckAt = now + checkInterval }
        return actions
    }

    // MARK: Wake-ups are missed

    enum GapAction: Sendable {
        case none
        case check([Check])
    }

    /// The subscription was interrupted and is active again.
    mutating func gap(_ generation: Int) -> GapAction {
        guard subscription?.generation == generation else { return .none }
        return checkMissedWakeUps().map { .check($0) } ?? .none
    }

    /// The connection for commands is new: it may lead to another server, which may not know that this process wants to be
    /// notified.
    mutating func reconnected(now: Duration) -> GapAction {
        trails.reconnected(now: now)
        guard subscription != nil else { return .none }
        return checkMissedWakeUps().map { .check($0) } ?? .none
    }

    /// Checks all calls after wake-ups may have been missed.
    private mutating func checkMissedWakeUps() -> [Check]? {
        for call in calls.values { if case .reading = call.state { call.state = .reading(.unknownChange) } }
        return startSweep(afterGap: true)
    }

    // MARK: Wake-ups arrive

    mutating func wakeUpsArrived(_ generation: Int, _ wakeUps: [MailWakeUp], now: Duration) -> [ReadAction] {
        guard subscription?.generation == generation else { return [] }
        return wakeUps.flatMap { wakeUp in calls(for: wakeUp.mailbox).compactMap { receive(wakeUp, $0, now) } }
    }

    private mutating func receive(_ wakeUp: MailWakeUp, _ call: PendingListen, _ now: Duration) -> ReadAction? {
        switch call.state {
        case .waiting:
            switch resume(call, with: hasMissedWakeUps ? .unknownChange : .wakeUp(wakeUp), isFresh: true, now) {
            case .none: return nil
            case .read(let read): return .read(read)
            case .finish(let outcome): return .finish(call.id, outcome)
            }
        case .reading(.unknownChange): return nil
        case .reading:
            // The last of several wake-ups counts: it was sent last.
            call.state = .reading(wakeUp.growth == nil ? .unknownChange : .wakeUp(wakeUp))
            return nil
        case .subscribing, .queued, .pausing: return nil
        }
    }

    /// The calls that fulfil a condition, the oldest first.
    func calls(where condition: (PendingListen) -> Bool) -> [PendingListen] {
        calls.values.filter(condition).sorted { $0.id < $1.id }
    }
}
