// The checks of latches and barriers in a recorded history.
import TestHistory

/// A latch with one caller at a time.
struct LatchModel: SequentialModel {
    enum Step: Hashable {
        /// Counts down, and returned the remaining count, if that is known.
        case down(remaining: Int?)
        case pass
    }

    let count: Int
    /// The number of countdowns so far.
    let start = 0

    func state(after step: Step, in state: Int, besides others: () -> [Step]) -> Int? {
        switch step {
        case .down(let remaining):
            let next = state + 1
            return remaining.map { $0 == max(0, count - next) } ?? true ? next : nil
        case .pass: return state >= count ? state : nil
        }
    }
}

extension History {
    /// Checks that no call passes a latch before `count` countdowns, and that each countdown
    /// returns a possible number.
    func latchFaults(of resource: String, count: Int) -> [String] {
        var (steps, owners): ([TimedStep<LatchModel.Step>], [Int]) = ([], [])
        for (place, call) in calls.enumerated() where call.resource == resource {
            let isCertain = call.outcome == .ok
            guard isCertain || call.outcome == .unknown && call.verb == .down else { continue }
            let step = call.verb == .down ? LatchModel.Step.down(remaining: isCertain ? call.value : nil) : .pass
            steps.append(TimedStep(step: step, called: call.called, returned: isCertain ? call.returned : nil))
            owners.append(place)
        }
        switch Linearizability.verdict(on: steps, of: LatchModel(count: count)) {
        case .legal: return []
        case .illegal(let step):
            return [
                "no order of the operations on \(resource) explains the call marked <<<\n"
                    + timeline(around: owners[step])
            ]
        case .tooWide(let step):
            return ["too many concurrent operations on \(resource) to judge\n" + timeline(around: owners[step])]
        }
    }

    /// Checks that all parties of a generation waited at one moment, that generations follow one
    /// another, and that each missing party may be a call without a known outcome.
    func barrierFaults(of resource: String, parties: Int) -> [String] {
        let arrivals = calls.indices.filter { calls[$0].resource == resource && calls[$0].outcome == .ok }
        // Calls that may have passed without a known outcome.
        let silent = calls.filter { $0.resource == resource && ![.ok, .timedOut, .cancelled].contains($0.outcome) }
        let generations = Dictionary(grouping: arrivals) { calls[$0].value! / 1024 }
        var opened: UInt64 = 0
        var missing = 0
        for (generation, places) in generations.sorted(by: { $0.key < $1.key }) {
            if Set(places.map { calls[$0].value! }).count < places.count || places.count > parties {
                return ["generation \(generation) of \(resource) has too many arrivals\n" + timeline(around: places[0])]
            }
            missing += parties - places.count
            let last = places.max { calls[$0].called < calls[$1].called }!
            opened = max(opened, calls[last].called)
            if let early = places.first(where: { calls[$0].returned! < opened }) {
                return ["passed \(resource) before all parties had arrived\n" + timeline(around: early, with: last)]
            }
        }
        if missing > silent.count {
            return ["\(missing) parties passed \(resource) without reporting it"]
        }
        return []
    }
}
