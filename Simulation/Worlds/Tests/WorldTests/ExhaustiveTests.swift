// All orders of the events of tiny worlds.
import Foundation
import Testing

@testable import World

@Suite("All orders of events", .enabled(if: repeatsHashes))
struct ExhaustiveTests {
    private static func scenario(_ name: String) -> Scenario { Scenario.all.first { $0.name == name }! }

    /// Runs a body on a thread of its own: a world runs tasks of the library, and a test is a task itself.
    private static func onThread<Value>(_ body: @escaping () -> Value) -> Value {
        nonisolated(unsafe) let body = body
        nonisolated(unsafe) var value: Value?
        let end = DispatchSemaphore(value: 0)
        let thread = Thread {
            value = body()
            end.signal()
        }
        thread.stackSize = 8 << 20
        thread.start()
        end.wait()
        return value!
    }

    @Test("keep every promise", arguments: ["lock-break", "lock-death", "barrier-calm", "mailbox-calm"])
    func kept(name: String) {
        let (violations, isComplete, paths) = Self.onThread {
            var explorer = Explorer(Self.scenario(name))
            let finding = explorer.run()
            return (finding?.world.violations ?? [], explorer.isComplete, explorer.paths)
        }
        #expect(violations == [] && isComplete && paths > 10)
    }

    @Test("lead to the same ends whether or not paths end at known states", arguments: ["lock-calm", "barrier-calm"])
    func sameEnds(name: String) {
        let (short, long) = Self.onThread {
            var explorers = [true, false].map { Explorer(Self.scenario(name), usesStates: $0) }
            for index in explorers.indices { _ = explorers[index].run() }
            return (explorers[0], explorers[1])
        }
        #expect(short.ends == long.ends && !short.ends.isEmpty)
        #expect(short.isComplete && long.isComplete && short.paths < long.paths)
    }

    @Test(
        "find what a script lacks, and repeat it from the choices",
        arguments: [
            // A repeated request that has a second effect.
            ("lock-break", "if request_number == slot_number then", "if false then"),
            // A batch that later waiters pass.
            ("semaphore-calm", "queue_is_blocked = true", "queue_is_blocked = false"),
            // A repeated send that has a second effect.
            ("mailbox-break", "if request_number == answer_number then", "if false then"),
        ])
    func altered(name: String, text: String, replacement: String) {
        let (found, again) = Self.onThread {
            let scenario = Self.scenario(name)
            let alter = { (source: String) in
                let code = source.split(separator: "\n").filter { !$0.hasPrefix("--") }.joined(separator: " ")
                return code.split(separator: " ").joined(separator: " ").replacing(text, with: replacement)
            }
            var explorer = Explorer(scenario, alteredScripts: alter)
            guard let finding = explorer.run() else { return ([String](), [String]()) }
            let again = Explorer.replay(scenario, finding.choices, alteredScripts: alter)
            return (finding.world.violations, again.violations)
        }
        #expect(!found.isEmpty && found == again)
    }
}
