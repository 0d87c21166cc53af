// Random commands have the same replies and the same effects on a real server and on a simulated one.

import SimulatedRedis
import Testing

@Suite("Commands, compared with a real server") struct CommandTests {
    @Test("random commands have the same replies and effects", .timeLimit(.minutes(5)))
    func randomCommands() throws {
        let seed = SeededGenerator.seedOfRun
        try RealServer.with { server in
            let comparison = try Comparison(server)
            let clock = ContinuousClock()
            let start = clock.now
            for episode in 0..<500 {
                let now = try server.time() / 1000
                var generator = CommandGenerator(
                    seed: seed &+ UInt64(episode), now: now, version: comparison.dialect.version)
                let commands = generator.commands(220)
                guard let difference = try comparison.firstDifference(commands) else { continue }
                try report(difference, commands, seed: seed, comparison)
                return
            }
            print("\(comparison.dialect.name): \(comparison.compared) commands in \(clock.now - start), seed \(seed)")
        }
    }

    /// Records a difference with the fewest commands that show one.
    private func report(
        _ difference: Difference, _ commands: [[Bytes]], seed: UInt64, _ comparison: Comparison
    ) throws {
        let prefix = Array(commands.prefix(difference.count))
        let shortest = try shortened(prefix) { try comparison.firstDifference($0) != nil }
        let last = try comparison.firstDifference(shortest) ?? difference
        let lines = shortest.map { "    " + $0.map { "\"\($0)\"" }.joined(separator: " ") }.joined(separator: "\n")
        Issue.record("seed \(seed), \(comparison.dialect.name):\n\(lines)\n\(last)")
    }
}
