import Foundation
import Testing

@testable import World

@Suite("Smaller worlds")
struct ShrinkerTests {
    /// Lets a group of a light switch enter, but for its first member.
    private static func alter(_ source: String) -> String {
        let code = source.split(separator: "\n").filter { !$0.hasPrefix("--") }.joined(separator: " ")
        return code.split(separator: " ").joined(separator: " ").replacing("== 1 then", with: "== 1 and false then")
    }

    @Test(
        "break the same promise, have less in them, and can be repeated from their seed and plan",
        .enabled(if: repeatsHashes))
    func shrinks() throws {
        let found = (1...50 as ClosedRange<UInt64>).lazy.map { seed in
            let plan = World.Plan(seed: seed)
            let world = World(seed: seed, plan: plan, alteredScripts: Self.alter)
            world.run()
            return Shrinker.Finding(seed: seed, plan: plan, world: world)
        }.first { !$0.world.violations.isEmpty }
        let first = try #require(found)
        let smallest = Shrinker(alteredScripts: Self.alter).shrink(first)
        #expect(smallest.plan.uses.count == 1 && smallest.plan.faults == .none && smallest.plan.processes == 1)
        #expect(smallest.world.events <= first.world.events)
        let text = try JSONEncoder().encode(smallest.plan)
        let plan = try JSONDecoder().decode(World.Plan.self, from: text)
        let again = World(seed: smallest.seed, plan: plan, alteredScripts: Self.alter)
        again.run()
        #expect(again.violations == smallest.world.violations && again.lastEvents == smallest.world.lastEvents)
        // The library's own scripts keep the promise.
        let unaltered = World(seed: smallest.seed, plan: plan)
        unaltered.run()
        #expect(unaltered.violations == [])
    }
}
