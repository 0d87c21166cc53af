// The calls of a recorded history as steps of the model.
import TestHistory

extension History {
    /// Returns the steps on one resource, and the call of each step.
    ///
    /// - Parameter settleTimeout: the time for which a cancelled call waits for the end of its
    ///   claim. After a call that took longer, the claim may still be in the queue.
    func steps(of resource: String, settleTimeout: UInt64) -> (steps: [TimedStep<PermitModel.Step>], calls: [Int]) {
        let places = calls.indices.filter { calls[$0].resource == resource }
        var releases: [Key: HistoryRecorder.Outcome] = [:]
        for place in places where calls[place].verb == .release {
            releases[Key(process: calls[place].process, id: calls[place].claim)] = calls[place].outcome
        }
        let crowds = crowds(places, settleTimeout: settleTimeout)
        var (steps, owners): ([TimedStep<PermitModel.Step>], [Int]) = ([], [])
        func add(_ step: PermitModel.Step, _ place: Int, isCertain: Bool) {
            let returned = isCertain ? calls[place].returned : nil
            steps.append(TimedStep(step: step, called: calls[place].called, returned: returned))
            owners.append(place)
        }
        for place in places {
            let call = calls[place]
            switch (call.verb, call.outcome) {
            case (.signal, .ok): add(.signal(count: call.count), place, isCertain: true)
            case (.signal, .unknown): add(.signal(count: call.count), place, isCertain: false)
            case (.release, .ok):
                let claim = index[Key(process: call.process, id: call.claim)]!
                add(.give(claim: claim), place, isCertain: true)
            case (.release, _): break
            case (_, .ok), (_, .unknown):
                let release = releases[Key(process: call.process, id: call.id)]
                let goesBack =
                    call.leases
                    ? call.outcome == .unknown || release.map { $0 != .ok } ?? (losses[call.process] != nil)
                    : !isConfirmed(call)
                let take = PermitModel.Step.take(
                    claim: call.leases || goesBack ? place : nil, count: call.count,
                    fence: call.fence > 0 ? call.fence : nil, queues: call.queues)
                add(take, place, isCertain: call.outcome == .ok)
                // The end of its session returns it at any time.
                if goesBack { add(.give(claim: place), place, isCertain: false) }
            case (_, .refused):
                let isCrowded = crowds.contains {
                    $0.place != place && $0.from <= call.returned! && $0.to >= call.called
                }
                add(.refuse(count: call.count, isCrowded: isCrowded), place, isCertain: true)
            case (_, .timedOut), (_, .cancelled), (_, .lost): break
            }
        }
        return (steps, owners)
    }

    private struct Crowd {
        var place: Int
        var from: UInt64
        var to: UInt64
    }

    /// Returns the times at which a call without a step may have been in the queue or held a
    /// permit.
    private func crowds(_ places: [Int], settleTimeout: UInt64) -> [Crowd] {
        var crowds = places.filter { [.timedOut, .cancelled, .lost].contains(calls[$0].outcome) && calls[$0].queues }
            .map { place in
                let call = calls[place]
                let gaveUp = call.gaveUp.map { max($0, call.called) } ?? call.called
                let isOver = call.returned! < gaveUp + settleTimeout
                return Crowd(place: place, from: call.called, to: isOver ? call.returned! : .max)
            }
        if let first = losses.values.min() {
            // A lost session may have had grants that no caller saw. It ended at most a TTL before the loss was noticed.
            let ttl: UInt64 = 5_000_000_000
            crowds.append(Crowd(place: -1, from: first > ttl ? first - ttl : 0, to: .max))
        }
        return crowds
    }

    /// Returns whether a consumed permit is confirmed.
    ///
    /// The next request of the process confirms it. Until then the end of the session returns it.
    func isConfirmed(_ call: Call) -> Bool {
        guard let loss = losses[call.process] else { return true }
        guard call.outcome == .ok, let returned = call.returned else { return false }
        return calls.contains {
            $0.process == call.process && $0.called >= returned && [.ok, .refused].contains($0.outcome)
                && ($0.returned ?? .max) <= loss
        } || returned > loss
    }
}
