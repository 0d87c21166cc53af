// A model of semaphores and mutexes.

/// A semaphore with one caller at a time. A mutex has one permit.
struct PermitModel: SequentialModel {
    enum Step: Hashable {
        /// A take with a `claim` can be given back. A `fence` must be higher than all before.
        case take(claim: Int?, count: Int, fence: UInt64?, queues: Bool)
        /// Returns the permits of a claim that is held.
        case give(claim: Int)
        case signal(count: Int)
        /// A try that was refused: too few permits were free, or others were waiting, which it may
        /// not overtake.
        case refuse(count: Int, isCrowded: Bool)
    }

    struct State: Hashable {
        var free: Int
        var fence: UInt64 = 0
        /// Pairs of claim and count, in the order of claims.
        var held: [[Int]] = []
    }

    let start: State

    init(permits: Int) { start = State(free: permits) }

    func state(after step: Step, in state: State, besides others: () -> [Step]) -> State? {
        var next = state
        switch step {
        case .take(let claim, let count, let fence, _):
            guard state.free >= count, fence.map({ $0 > state.fence }) ?? true else { return nil }
            next.free -= count
            next.fence = fence ?? state.fence
            if let claim {
                let index = state.held.firstIndex { $0[0] > claim } ?? state.held.count
                next.held.insert([claim, count], at: index)
            }
        case .give(let claim):
            guard let index = state.held.firstIndex(where: { $0[0] == claim }) else { return nil }
            next.free += next.held.remove(at: index)[1]
        case .signal(let count): next.free += count
        case .refuse(let count, let isCrowded):
            let someoneWaits = others().contains {
                if case .take(_, _, _, queues: true) = $0 { true } else { false }
            }
            guard state.free < count || isCrowded || someoneWaits else { return nil }
        }
        return next
    }
}
