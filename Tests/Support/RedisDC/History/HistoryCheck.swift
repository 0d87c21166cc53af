// The checks of a recorded history.
import TestHistory

@testable import RedisDC

extension History {
    /// Returns a message for each fault of the history.
    ///
    /// - Parameter permits: The initial permits of each resource, the count of a latch, the parties
    ///   of a barrier.
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
                    "no order of the operations on \(resource) explains the call marked <<<\n"
                        + timeline(around: owners[step]))
            case .tooWide(let step):
                faults.append(
                    "too many concurrent operations on \(resource) to judge\n" + timeline(around: owners[step]))
            }
        }
        return faults
    }

    // MARK: Checks of linear cost

    /// Checks that a fence is higher than those of all grants that returned before its request, and
    /// that no fence is granted twice: for each mutex, which may be with a cohort, and for all other
    /// resources together.
    func fenceFaults() -> [String] {
        let grants = calls.indices.filter { calls[$0].fence > 0 }
        let groups = Dictionary(grouping: grants) { place in
            HistoryMix.mutexes.contains(calls[place].resource) ? calls[place].resource : ""
        }
        return groups.values.flatMap { fenceFaults(among: $0) }
    }

    private func fenceFaults(among grants: [Int]) -> [String] {
        let byCall = grants.sorted { calls[$0].called < calls[$1].called }
        let byReturn = grants.sorted { calls[$0].returned! < calls[$1].returned! }
        var faults: [String] = []
        var returned = 0
        var highest: Int?
        for place in byCall {
            while returned < byReturn.count, calls[byReturn[returned]].returned! < calls[place].called {
                let candidate = byReturn[returned]
                if calls[candidate].fence > highest.map({ calls[$0].fence }) ?? 0 { highest = candidate }
                returned += 1
            }
            if let highest, calls[highest].fence >= calls[place].fence {
                faults.append(
                    "fence \(calls[place].fence) came after \(calls[highest].fence)\n"
                        + timeline(around: place, with: highest))
            }
        }
        let byFence = Dictionary(grouping: grants) { calls[$0].fence }
        for (fence, places) in byFence where places.count > 1 {
            faults.append("fence \(fence) was granted twice\n" + timeline(around: places[1], with: places[0]))
        }
        return faults
    }

    /// Checks that no more permits are held at once than exist.
    ///
    /// A caller holds its permits from the return of the acquire to the last moment at which it
    /// observed the lease as held.
    func overlaps(of resource: String, permits: Int) -> [String] {
        let held = calls.indices.filter { calls[$0].resource == resource && calls[$0].lastHeld != nil }
        var moments = held.map { (calls[$0].returned!, calls[$0].count, $0) }
        moments += held.map { (calls[$0].lastHeld! + 1, -calls[$0].count, $0) }
        moments.sort { ($0.0, $0.1, $0.2) < ($1.0, $1.1, $1.2) }
        var heldPermits = 0
        for (_, change, place) in moments {
            heldPermits += change
            if heldPermits > permits {
                return [
                    "\(heldPermits) of \(permits) permits of \(resource) are held\n" + timeline(around: place)
                ]
            }
        }
        return []
    }

    /// Checks that no more permits are consumed than existed initially and were signalled before.
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
            if taken > permits {
                return ["more permits of \(resource) were consumed than existed\n" + timeline(around: place)]
            }
        }
        return []
    }
}
