// Semaphores and mutexes as they would be with one caller at a time.

/// Permits that are taken and given. A mutex is one permit.
struct PermitModel: SequentialModel {
    enum Step: Hashable {
        /// With a `claim`, it can be given back under it; with a `fence`, that is higher than all before.
        case take(claim: Int?, count: Int, fence: UInt64?, queues: Bool)
        /// Only what is held is given back, once.
        case give(claim: Int)
        case signal(count: Int)
        /// A try found too little. While others wait that is so however much there is, because it may not overtake them.
        case refuse(count: Int, isCrowded: Bool)
    }

    struct State: Hashable {
        var free: Int
        var fence: UInt64 = 0
        /// Claim and count, in the order of claims.
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
