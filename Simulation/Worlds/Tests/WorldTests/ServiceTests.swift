// Worlds whose processes use leaderboards, matchmakers and presence.
import Testing

@testable import World

@Suite("Worlds with services")
struct ServiceTests {
    private static func world(_ seed: UInt64, _ change: (inout World.Plan) -> Void = { _ in }) -> World {
        var plan = World.Plan()
        (plan.seconds, plan.tasks) = (20, 0)
        var services = ServicePlan()
        (services.boards, services.players, services.size) = (2, 2, 2 + Int(seed % 2))
        services.widens = seed.isMultiple(of: 3)
        plan.services = services
        change(&plan)
        let world = World(seed: seed, plan: plan)
        MailTests.run(world)
        return world
    }

    @Test("keep every promise under faults that lose no data", arguments: 1...6 as ClosedRange<UInt64>)
    func usualFaults(seed: UInt64) {
        let world = Self.world(seed)
        #expect(world.violations == [], "seed \(seed)")
        #expect(world.checks > 500 && world.faults > 5)
    }

    @Test("keep every promise when a replica is promoted", arguments: 1...4 as ClosedRange<UInt64>)
    func promotions(seed: UInt64) {
        let world = Self.world(seed) { ($0.faults.promotions, $0.faults.lateReplies) = (6, 5) }
        #expect(world.violations == [], "seed \(seed)")
    }

    @Test("are the same for the same seed", .enabled(if: repeatsHashes))
    func repeatable() {
        let worlds = [5, 5, 6].map { Self.world($0) }
        #expect(worlds[0].lastEvents == worlds[1].lastEvents)
        #expect(worlds[0].lastEvents != worlds[2].lastEvents)
    }

    @Test(
        "find what a script lacks",
        arguments: [
            Alteration(
                promise: "a submit under an id counts once",
                replacements: ["if earlier then local line_end": "if nil then local line_end"]),
            Alteration(
                promise: "no suitable group waits",
                replacements: ["group = {oldest} break": "group = nil break"],
                finding: "are suitable, and wait"),
        ])
    func scriptLacks(alteration: Alteration) {
        var found: [String] = []
        for seed in 1...20 as ClosedRange<UInt64> where found.allSatisfy({ !$0.contains(alteration.finding) }) {
            var plan = World.Plan()
            (plan.seconds, plan.tasks, plan.faults) = (20, 0, .deaths)
            plan.services = ServicePlan()
            let world = World(seed: seed, plan: plan, alteredScripts: alteration.alter)
            MailTests.run(world)
            found += world.violations
        }
        #expect(found.contains { $0.contains(alteration.finding) }, "\(found)")
    }
}
