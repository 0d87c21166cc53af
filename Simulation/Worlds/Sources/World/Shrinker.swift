// Looks for a smaller world that breaks the same promise, because a reader understands it sooner.

/// Makes the plan of a world that has broken a promise smaller, one step after the other.
///
/// A step is kept if one of a few seeds breaks the same promise with it: a world changes as a whole with each step, so that the
/// same seed alone would seldom do.
public struct Shrinker {
    /// A world that breaks a promise.
    public struct Finding {
        public var seed: UInt64
        public var plan: World.Plan
        public var world: World

        /// Creates a finding from a world that has run.
        public init(seed: UInt64, plan: World.Plan, world: World) {
            (self.seed, self.plan, self.world) = (seed, plan, world)
        }
    }

    private let alteredScripts: (String) -> String
    private let seeds: UInt64
    private let isOver: () -> Bool

    /// - Parameters:
    ///   - seeds: how many seeds are tried with each step.
    ///   - isOver: whether no further step is tried.
    public init(
        alteredScripts: @escaping (String) -> String, seeds: UInt64 = 20, isOver: @escaping () -> Bool = { false }
    ) {
        (self.alteredScripts, self.seeds, self.isOver) = (alteredScripts, seeds, isOver)
    }

    /// Returns the smallest world found.
    public func shrink(_ finding: Finding) -> Finding {
        var smallest = finding
        var hasShrunk = true
        while hasShrunk, !isOver() {
            hasShrunk = false
            for plan in Self.smaller(smallest) {
                if isOver() { break }
                guard let found = attempt(plan, from: smallest.seed, like: finding.world) else { continue }
                (smallest, hasShrunk) = (found, true)
                break
            }
        }
        return smallest
    }

    private func attempt(_ plan: World.Plan, from seed: UInt64, like other: World) -> Finding? {
        for offset in 0..<seeds {
            let world = World(seed: seed &+ offset, plan: plan, alteredScripts: alteredScripts)
            world.run()
            if Self.kind(of: world) == Self.kind(of: other) {
                return Finding(seed: seed &+ offset, plan: plan, world: world)
            }
            if isOver() { return nil }
        }
        return nil
    }

    /// The first violation without its numbers.
    private static func kind(of world: World) -> String? {
        world.violations.first.map { String($0.filter { !$0.isNumber }.prefix(40)) }
    }

    /// Plans that are smaller in one respect, those first that save most.
    private static func smaller(_ finding: Finding) -> [World.Plan] {
        let plan = finding.plan
        var plans: [World.Plan] = []
        func add(_ change: (inout World.Plan) -> Void) {
            var smaller = plan
            change(&smaller)
            if smaller != plan { plans.append(smaller) }
        }
        if plan.uses.count > 1 { for use in plan.uses { add { $0.uses = [use] } } }
        for use in plan.uses where plan.uses.count > 2 { add { $0.uses.removeAll { $0 == use } } }
        for kind in Faults.kinds { add { $0.faults[keyPath: kind] = 0 } }
        for count in [1, 2, plan.processes - 1] where count >= 1 && count < plan.processes {
            add { $0.processes = count }
        }
        add { $0.mail.tasks = 0 }
        for count in [1, plan.mail.tasks - 1] where count >= 1 && count < plan.mail.tasks {
            add { $0.mail.tasks = count }
        }
        add { $0.mail.partitions = 1 }
        add { $0.mail.boxes = 1 }
        add { $0.mail.devices = 1 }
        add { $0.mail.hasLimits = false }
        add { $0.mail.hasInbox = false }
        add { $0.mail.hasRecurring = false }
        add { $0.mail.hasWorkers = false }
        add { $0.mail.hasEffects = false }
        if plan.mail.tasks > 0 { add { $0.tasks = 0 } }
        for count in [1, plan.tasks - 1] where count >= 1 && count < plan.tasks {
            add { $0.tasks = count }
        }
        add { $0.resources = 1 }
        add { $0.ttls = [$0.ttls.max() ?? 6] }
        let seconds = max(1, min(Int(finding.world.seconds.rounded(.up)), plan.seconds))
        for limit in [seconds / 4, seconds / 2, seconds] where limit >= 1 {
            add { $0.seconds = min($0.seconds, limit) }
        }
        return plans
    }
}
