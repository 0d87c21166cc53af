// Latches and barriers of a recorded history: who may have passed when.
import TestHistory

/// A latch as it would be with one caller at a time.
struct LatchModel: SequentialModel {
    enum Step: Hashable {
        /// Counts down, and was told how many are still to come.
        case down(remaining: Int?)
        case pass
    }

    let count: Int
    /// How many have been counted down.
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
    /// Nobody passes a latch before it was counted down so often, and each is told a number that fits.
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
                "no order of what was done to \(resource) explains the line with <<<\n" + timeline(around: owners[step])
            ]
        case .tooWide(let step):
            return ["too much of \(resource) at a time to be judged\n" + timeline(around: owners[step])]
        }
    }

    /// All of a generation were there at one moment, one generation after the other; nobody is missing who can still say so.
    func barrierFaults(of resource: String, parties: Int) -> [String] {
        let arrivals = calls.indices.filter { calls[$0].resource == resource && calls[$0].outcome == .ok }
        // Whoever may have passed without saying so.
        let silent = calls.filter { $0.resource == resource && ![.ok, .timedOut, .cancelled].contains($0.outcome) }
        let generations = Dictionary(grouping: arrivals) { calls[$0].value! / 1024 }
        var opened: UInt64 = 0
        var missing = 0
        for (generation, places) in generations.sorted(by: { $0.key < $1.key }) {
            if Set(places.map { calls[$0].value! }).count < places.count || places.count > parties {
                return ["generation \(generation) of \(resource) has too many\n" + timeline(around: places[0])]
            }
            missing += parties - places.count
            let last = places.max { calls[$0].called < calls[$1].called }!
            opened = max(opened, calls[last].called)
            if let early = places.first(where: { calls[$0].returned! < opened }) {
                return ["passed \(resource) before all were there\n" + timeline(around: early, with: last)]
            }
        }
        if missing > silent.count {
            return ["\(missing) passed \(resource) and were told that they had not, or not told"]
        }
        return []
    }
}
