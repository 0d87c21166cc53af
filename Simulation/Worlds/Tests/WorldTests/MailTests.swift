// Worlds whose processes send to mailboxes and read them.
import Foundation
import Testing

@testable import World

@Suite("Worlds with mailboxes")
struct MailTests {
    private static func world(_ seed: UInt64, _ change: (inout World.Plan) -> Void = { _ in }) -> World {
        var plan = World.Plan()
        (plan.seconds, plan.tasks, plan.mail.tasks) = (30, 1, 2)
        change(&plan)
        let world = World(seed: seed, plan: plan)
        run(world)
        return world
    }

    /// Runs a world on a thread of its own: it runs tasks of the library, and a test is a task itself.
    static func run(_ world: World) {
        nonisolated(unsafe) let world = world
        let end = DispatchSemaphore(value: 0)
        let thread = Thread {
            world.run()
            end.signal()
        }
        thread.stackSize = 8 << 20
        thread.start()
        end.wait()
    }

    @Test("keep every promise under faults that lose no data", arguments: 1...6 as ClosedRange<UInt64>)
    func usualFaults(seed: UInt64) {
        let world = Self.world(seed)
        #expect(world.violations == [], "seed \(seed)")
        #expect(world.checks > 500 && world.faults > 5)
    }

    @Test("keep every promise with sends across partitions", arguments: 1...4 as ClosedRange<UInt64>)
    func partitions(seed: UInt64) {
        let world = Self.world(seed) { $0.mail.partitions = 2 }
        #expect(world.violations == [], "seed \(seed)")
    }

    @Test("report lost messages, and only those, when a replica is promoted", arguments: 1...4 as ClosedRange<UInt64>)
    func promotions(seed: UInt64) {
        let world = Self.world(seed) { $0.faults.promotions = 6 }
        #expect(world.violations == [], "seed \(seed)")
    }

    @Test("are the same for the same seed", .enabled(if: repeatsHashes))
    func repeatable() {
        let worlds = [5, 5, 6].map { Self.world($0) { $0.mail.partitions = 2 } }
        #expect(worlds[0].lastEvents == worlds[1].lastEvents)
        #expect(worlds[0].lastEvents != worlds[2].lastEvents)
    }

    @Test(
        "find what a script lacks",
        arguments: [
            // Messages are kept for the slowest device.
            ("if others_least and others_least < cut then", "if false then"),
            // A repeated send has one effect.
            ("if request_number == answer_number then", "if false then"),
            // An id that was used for another send is refused.
            ("if repeated_fingerprint ~= request_fingerprint then", "if false then"),
            // A process that waits is notified.
            ("if is_waiting then", "if false then"),
            // A newer poll supersedes an older one.
            ("if not poll_is_current and (request_phase == 0 and not poll_begins or", "if (false or"),
        ])
    func mutations(text: String, replacement: String) {
        let found = (1...20 as ClosedRange<UInt64>).contains { seed in
            var plan = World.Plan()
            (plan.tasks, plan.mail.tasks) = (0, 3)
            let world = World(seed: seed, plan: plan) { source in
                let code = source.split(separator: "\n").filter { !$0.hasPrefix("--") }.joined(separator: " ")
                return code.split(separator: " ").joined(separator: " ").replacing(text, with: replacement)
            }
            Self.run(world)
            return !world.violations.isEmpty
        }
        #expect(found)
    }
}
