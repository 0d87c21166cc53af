// Checks of all waiting calls, in batches.
import CoordinationBase

extension ListenStateMachine {
    var checkInterval: Duration {
        subscription?.status == .active ? settings.recheckInterval : settings.pollInterval
    }

    /// Whether wake-ups may have been missed that the sweep under way has not made up for.
    var hasMissedWakeUps: Bool {
        switch sweep {
        case .idle: false
        case .checking(_, let remainder), .pausing(_, let remainder): remainder.followsGap
        }
    }

    /// Checks all waiting calls once. During a sweep, any number of reasons for another one cause
    /// one more.
    mutating func startSweep(afterGap: Bool) -> [Check]? {
        func noted(_ remainder: SweepRemainder) -> SweepRemainder {
            SweepRemainder(
                unchecked: remainder.unchecked, repeats: true, followsGap: remainder.followsGap || afterGap)
        }
        switch sweep {
        case .checking(let batch, let remainder): sweep = .checking(batch, noted(remainder))
        case .pausing(let until, let remainder): sweep = .pausing(until: until, noted(remainder))
        case .idle: return nextBatch(SweepRemainder(unchecked: waitingIDs, followsGap: afterGap))
        }
        return nil
    }

    private var waitingIDs: [ID] { calls { $0.isWaiting }.map(\.id) }

    /// Takes the next batch from a sweep's remainder, or ends the sweep.
    mutating func nextBatch(_ remainder: SweepRemainder) -> [Check]? {
        var remainder = remainder
        repeat {
            while !remainder.unchecked.isEmpty {
                let batch = Array(remainder.unchecked.suffix(settings.batch))
                remainder.unchecked.removeLast(batch.count)
                let checks = batch.compactMap { id -> Check? in
                    guard let call = calls[id], call.isWaiting, let cursor = call.request.cursor else { return nil }
                    return Check(
                        id: id, poll: call.poll, mailbox: call.request.mailbox, device: call.request.device,
                        cursor: cursor)
                }
                if checks.isEmpty { continue }
                sweep = .checking(batch, remainder)
                return checks
            }
            guard remainder.repeats else { break }
            remainder = SweepRemainder(unchecked: waitingIDs, followsGap: remainder.followsGap)
        } while true
        sweep = .idle
        return nil
    }

    // MARK: A batch is checked

    /// The action that follows from the reply to a check, or from a subscription, after which all calls are checked.
    enum CheckAction: Sendable {
        case read(Read)
        case check([Check])
    }

    /// A batch was checked, or the command has failed.
    ///
    /// - Parameter result: the calls that must read again.
    mutating func checkReplied(_ result: Result<[ID], Failure>, now: Duration) -> [CheckAction] {
        guard case .checking(let batch, var remainder) = sweep else { return [] }
        let changed: [ID]
        switch result {
        case .success(let ids): changed = ids
        // Each call finds out by itself what is wrong.
        case .failure(.permanent): changed = batch
        case .failure(.transient):
            remainder.unchecked += batch
            sweep = .pausing(until: now + settings.retryPause, remainder)
            return []
        }
        var actions: [CheckAction] = changed.compactMap { id in
            guard let call = calls[id] else { return nil }
            switch call.state {
            case .waiting: return startRead(call).map { .read($0) }
            case .reading:
                call.state = .reading(.unknownChange)
                return nil
            case .subscribing, .queued, .pausing: return nil
            }
        }
        if let checks = nextBatch(remainder) { actions.append(.check(checks)) }
        return actions
    }
}
