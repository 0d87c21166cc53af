import Foundation
import Testing

@testable import World

/// Whether the order in dictionaries is the same in each run, on which the order of events depends.
let repeatsHashes = ProcessInfo.processInfo.environment["SWIFT_DETERMINISTIC_HASHING"] != nil

@Suite("Worlds")
struct WorldTests {
    private static func world(_ seed: UInt64, _ change: (inout World.Plan) -> Void = { _ in }) -> World {
        var plan = World.Plan(seed: seed)
        change(&plan)
        return World(seed: seed, plan: plan)
    }

    @Test("keep every promise under faults that lose no data", arguments: 1...8 as ClosedRange<UInt64>)
    func usualFaults(seed: UInt64) {
        let world = Self.world(seed)
        world.run()
        #expect(world.violations == [], "seed \(seed)")
        #expect(world.checks > 0)
    }

    @Test("keep every promise of each family of primitives", arguments: World.families)
    func families(use: String) {
        for seed in 1...3 as ClosedRange<UInt64> {
            let world = Self.world(seed) { plan in
                (plan.uses, plan.seconds, plan.faults) = ([use], min(plan.seconds, 20), Faults())
            }
            world.run()
            #expect(world.violations == [], "seed \(seed)")
            #expect(world.checks > 0 && world.faults > 5)
        }
    }

    @Test(
        "keep every promise but those about lost data when a replica is promoted",
        arguments: 1...4 as ClosedRange<UInt64>)
    func promotions(seed: UInt64) {
        let world = Self.world(seed) { $0.faults.promotions = 4 }
        world.run()
        #expect(world.violations == [], "seed \(seed)")
    }

    @Test(
        "keep every promise when another program publishes on the channels of wake-ups",
        arguments: 1...4 as ClosedRange<UInt64>)
    func strangeMessages(seed: UInt64) {
        let world = Self.world(seed) { $0.faults.strangeMessages = 240 }
        world.run()
        #expect(world.violations == [], "seed \(seed)")
    }

    @Test(
        "keep every promise when a promoted master knows no script, and replies are handled late",
        arguments: 1...4 as ClosedRange<UInt64>)
    func lateReplies(seed: UInt64) {
        let world = Self.world(seed) { plan in
            (plan.uses, plan.mail.tasks, plan.tasks, plan.seconds) = (["mutex", "pool"], 0, 3, 10)
            (plan.isHasty, plan.pause, plan.hold) = (seed.isMultiple(of: 2), 20_000, 20_000)
            plan.faults = Faults()
            (plan.faults.promotions, plan.faults.longestLag) = (60, 300)
            (plan.faults.unknownScripts, plan.faults.lateReplies) = (1, 5)
        }
        world.run()
        #expect(world.violations == [], "seed \(seed)")
    }

    @Test("are the same for the same seed", .enabled(if: repeatsHashes))
    func repeatable() {
        let worlds = [Self.world(5), Self.world(5), Self.world(6)]
        for world in worlds { world.run() }
        #expect(worlds[0].lastEvents == worlds[1].lastEvents)
        #expect(worlds[0].lastEvents != worlds[2].lastEvents)
    }
}
