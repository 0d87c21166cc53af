// The project's scripts have the same replies and the same effects on a real server and on a simulated one.

import SimulatedRedis
import Testing

@Suite("Operations, compared with a real server", .serialized) struct OperationTests {
    private static let episodes = 150
    private static let length = 120

    @Test("operations of the engine have the same replies and effects", .timeLimit(.minutes(5)))
    func engine() throws {
        try compare("engine", ["engine"]) { EngineGenerator.operations($0, $1, $2) }
    }

    @Test("operations of mailboxes have the same replies and effects", .timeLimit(.minutes(5)))
    func mailboxes() throws {
        try compare("mailboxes", ["mail"]) { MailboxGenerator.operations($0, $1, $2) }
    }

    @Test("operations of presence, leaderboards and matchmakers have the same replies and effects")
    func services() throws {
        try compare("services", ["services"]) { ServiceGenerator.operations($0, $1, $2) }
    }

    @Test("operations of the gateway and the Arcade have the same replies and effects")
    func applications() throws {
        try compare("applications", ["gateway", "arcade"]) { ApplicationGenerator.operations($0, $1, $2) }
    }

    private func compare(_ what: String, _ modules: [String], _ generate: (UInt64, Int64, Int) -> [Operation]) throws {
        let seed = SeededGenerator.seedOfRun
        try RealServer.with { server in
            let comparison = try OperationComparison(server)
            let clock = ContinuousClock()
            let start = clock.now
            for episode in 0..<Self.episodes {
                let operations = generate(seed &+ UInt64(episode), try server.time(), Self.length)
                guard let difference = try comparison.firstDifference(operations) else { continue }
                try report(difference, operations, seed: seed, comparison)
                return
            }
            #expect(comparison.unused(modules) == [], "scripts that no operation has run")
            let dialect = comparison.comparison.dialect.name
            print(
                "\(dialect): \(comparison.count) operations of \(what), \(comparison.compared.count) scripts and commands, "
                    + "\(comparison.errors) errors, in \(clock.now - start), seed \(seed)")
        }
    }

    /// Records a difference with the fewest operations that show one.
    private func report(
        _ difference: Difference, _ operations: [Operation], seed: UInt64, _ comparison: OperationComparison
    ) throws {
        let prefix = Array(operations.prefix(difference.count))
        let shortest = try shortened(prefix) { try comparison.firstDifference($0) != nil }
        let last = try comparison.firstDifference(shortest) ?? difference
        let lines = shortest.map { "    \($0)" }.joined(separator: "\n")
        Issue.record("seed \(seed), \(comparison.comparison.dialect.name):\n\(lines)\n\(last)")
    }
}

extension EngineGenerator {
    fileprivate static func operations(_ seed: UInt64, _ time: Int64, _ count: Int) -> [Operation] {
        var generator = EngineGenerator(seed: seed, time: time)
        return generator.operations(count)
    }
}

extension MailboxGenerator {
    fileprivate static func operations(_ seed: UInt64, _ time: Int64, _ count: Int) -> [Operation] {
        var generator = MailboxGenerator(seed: seed, time: time)
        return generator.operations(count)
    }
}

extension ServiceGenerator {
    fileprivate static func operations(_ seed: UInt64, _ time: Int64, _ count: Int) -> [Operation] {
        var generator = ServiceGenerator(seed: seed, time: time)
        return generator.operations(count)
    }
}

extension ApplicationGenerator {
    fileprivate static func operations(_ seed: UInt64, _ time: Int64, _ count: Int) -> [Operation] {
        var generator = ApplicationGenerator(seed: seed, time: time)
        return generator.operations(count)
    }
}
