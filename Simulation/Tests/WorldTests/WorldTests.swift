import Testing

@testable import World

@Suite("World")
struct WorldTests {
    @Test("keeps every promise under faults that lose no data", arguments: 1...8 as ClosedRange<UInt64>)
    func usualFaults(seed: UInt64) {
        var plan = World.Plan()
        plan.seconds = 30
        let world = World(seed: seed, plan: plan)
        world.run()
        #expect(world.violations == [], "seed \(seed)")
        #expect(world.checks > 20)
    }

    @Test("finds a script that grants a mutex that is held")
    func findsBrokenMutex() {
        let found = (1...20 as ClosedRange<UInt64>).contains { seed in
            var plan = World.Plan()
            plan.faults = .none
            let world = World(seed: seed, plan: plan) { $0 }
            world.run()
            return world.violations.isEmpty
        }
        #expect(found)
    }
}
