// Everything that a recorded history is judged by.
import TestHistory

@testable import RedisDC

extension History {
    /// What is wrong with it, in words; empty when all is well.
    ///
    /// - Parameter permits: what each resource was made with; of a latch the count, of a barrier the parties.
    func faults(permits: [String: Int]) -> [String] {
        let settleTimeout = UInt64(EngineStateMachine.Settings().settleTimeout / .nanoseconds(1))
        var faults = fenceFaults()
        for resource in resources {
            let start = permits[resource]!
            switch calls.first(where: { $0.resource == resource })!.verb {
            case .down, .pass:
                faults += latchFaults(of: resource, count: start)
                continue
            case .arrive:
                faults += barrierFaults(of: resource, parties: start)
                continue
            case .take, .tryTake, .wait, .tryWait, .release, .signal: break
            }
            faults += overlaps(of: resource, permits: start) + overdrafts(of: resource, permits: start)
            let (steps, owners) = steps(of: resource, settleTimeout: settleTimeout)
            switch Linearizability.verdict(on: steps, of: PermitModel(permits: start)) {
            case .legal: break
            case .illegal(let step):
                faults.append(
                    "no order of what was done to \(resource) explains the line with <<<\n"
                        + timeline(around: owners[step]))
            case .tooWide(let step):
                faults.append("too much of \(resource) at a time to be judged\n" + timeline(around: owners[step]))
            }
        }
        return faults
    }

    // MARK: For any length

    /// A fence is higher than that of every grant that had been told before it was asked for, whatever the resource, and
    /// none comes twice.
    func fenceFaults() -> [String] {
        let grants = calls.indices.filter { calls[$0].fence > 0 }
        let byCall = grants.sorted { calls[$0].called < calls[$1].called }
        let byReturn = grants.sorted { calls[$0].returned! < calls[$1].returned! }
        var faults: [String] = []
        var told = 0
        var highest: Int?
        for place in byCall {
            while told < byReturn.count, calls[byReturn[told]].returned! < calls[place].called {
                if calls[byReturn[told]].fence > highest.map({ calls[$0].fence }) ?? 0 { highest = byReturn[told] }
                told += 1
            }
            if let highest, calls[highest].fence >= calls[place].fence {
                faults.append(
                    "fence \(calls[place].fence) came after \(calls[highest].fence)\n"
                        + timeline(around: place, with: highest))
            }
        }
        let byFence = Dictionary(grouping: grants) { calls[$0].fence }
        for (fence, places) in byFence where places.count > 1 {
            faults.append("fence \(fence) was given twice\n" + timeline(around: places[1], with: places[0]))
        }
        return faults
    }

    /// As the holders saw it: never more in hand than there are. Each holds from when it was told so to the last moment
    /// at which it was not told otherwise.
    func overlaps(of resource: String, permits: Int) -> [String] {
        let held = calls.indices.filter { calls[$0].resource == resource && calls[$0].lastHeld != nil }
        var moments = held.map { (calls[$0].returned!, calls[$0].count, $0) }
        moments += held.map { (calls[$0].lastHeld! + 1, -calls[$0].count, $0) }
        moments.sort { ($0.0, $0.1, $0.2) < ($1.0, $1.1, $1.2) }
        var inHand = 0
        for (_, change, place) in moments {
            inHand += change
            if inHand > permits {
                return ["\(inHand) of \(permits) in hand of \(resource)\n" + timeline(around: place)]
            }
        }
        return []
    }

    /// Never more consumed than were there and signalled until then.
    func overdrafts(of resource: String, permits: Int) -> [String] {
        var moments: [(UInt64, Int, Int)] = []
        for (place, call) in calls.enumerated() where call.resource == resource {
            if call.verb == .signal { moments.append((call.called, -call.count, place)) }
            if call.takes, !call.leases, call.outcome == .ok, isConfirmed(call) {
                moments.append((call.returned!, call.count, place))
            }
        }
        moments.sort { ($0.0, $0.1, $0.2) < ($1.0, $1.1, $1.2) }
        var taken = 0
        for (_, change, place) in moments {
            taken += change
            if taken > permits { return ["consumed more than there was of \(resource)\n" + timeline(around: place)] }
        }
        return []
    }
}
