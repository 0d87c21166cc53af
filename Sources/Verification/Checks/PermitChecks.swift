// The permits of semaphores after a run.

/// Compares the permits that are left with those that were created, signalled and consumed.
///
/// An operation without a known outcome may have happened or not. So may one whose process was notified afterwards that
/// data or its session is lost, and a consumed permit whose process was killed before it could confirm the receipt.
struct ConservationCheck {
    var finding = Finding(.conservation)
    private let announcements: Announcements
    private let ttl: UInt64

    private struct Balance {
        var created: Int
        var value: Int
        /// The limits between which the sum of signalled minus consumed permits is.
        var low = 0
        var high = 0
        /// The same without the announced losses.
        var exact = (low: 0, high: 0)
        var operations = 0
        var isUndecided = false
    }

    init(_ announcements: Announcements, ttl: Int) {
        self.announcements = announcements
        self.ttl = UInt64(ttl) * 1_000_000
    }

    mutating func check(_ events: [Event]) {
        var balances: [String: Balance] = [:]
        for event in events where event.kind == .value {
            guard let resource = event.resource, let value = event.count, let created = event.limit else { continue }
            balances[resource] = Balance(created: created, value: value)
        }
        var ends: [Announcements.Claim: Event] = [:]
        for event in events where event.kind == .end {
            ends[Announcements.Claim(process: event.process, operation: event.operation ?? 0)] = event
        }
        for event in events where event.kind == .call && (event.verb == .signal || event.verb == .wait) {
            guard let resource = event.resource else { continue }
            let end = ends[Announcements.Claim(process: event.process, operation: event.operation ?? 0)]
            add(event, end, to: &balances[resource])
        }
        for (resource, balance) in balances.sorted(by: { $0.key < $1.key }) {
            finding.checks += balance.operations + 1
            let change = balance.value - balance.created
            if (balance.exact.low...balance.exact.high).contains(change) { continue }
            let isExplained = (balance.low...balance.high).contains(change)
            let bounds = balance.low == balance.high ? "\(balance.low)" : "\(balance.low) to \(balance.high)"
            finding.add(
                isExplained ? (balance.isUndecided ? .impossible : .given) : .missing,
                "\(resource): \(balance.value) permits are left of \(balance.created), and the operations changed them "
                    + "by \(bounds)")
        }
    }

    private func add(_ call: Event, _ end: Event?, to balance: inout Balance?) {
        let outcome = end?.outcome ?? .unknown
        if balance == nil || outcome == .none { return }
        let isSignal = call.verb == .signal
        let change = (isSignal ? 1 : -1) * (call.count ?? 1)
        balance!.operations += 1
        if outcome == .ok {
            balance!.exact.low += change
            balance!.exact.high += change
        } else {
            balance!.exact.low += min(0, change)
            balance!.exact.high += max(0, change)
        }
        let (isUncertain, isUndecided) = isUncertain(call, end, isSignal)
        if outcome == .ok, !isUncertain {
            balance!.low += change
            balance!.high += change
        } else {
            balance!.low += min(0, change)
            balance!.high += max(0, change)
            if isUndecided { balance!.isUndecided = true }
        }
    }

    private func isUncertain(_ call: Event, _ end: Event?, _ isSignal: Bool) -> (Bool, isUndecided: Bool) {
        guard let end else { return (true, false) }
        switch announcements.notice(to: call.process, after: end.time) {
        case .given: return (true, false)
        case .impossible: return (true, true)
        case .missing: break
        }
        if isSignal { return (false, false) }
        // Without contact to Redis a process cannot confirm, for at most the TTL: then its session is lost.
        let isLate = announcements.kills[call.process].map { $0 >= end.time && $0 - end.time <= ttl } ?? false
        return (isLate, isLate)
    }
}

/// Checks that locks and leased permits were free after all processes had ended.
struct ReleaseCheck {
    var finding = Finding(.release)

    mutating func check(_ events: [Event]) {
        for event in events where event.kind == .free {
            finding.checks += 1
            if event.outcome != .ok {
                finding.add(.missing, "\(event.resource ?? ""): not free after all processes had ended")
            }
        }
    }
}
