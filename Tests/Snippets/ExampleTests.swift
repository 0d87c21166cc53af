// Runs every example of the documentation with a server of its own.
import Foundation
import Testing

@main struct Program {
    static func main() async { await Testing.__swiftPMEntryPoint() as Never }
}

@Suite("The examples of the documentation")
struct ExampleTests {
    @Test("run", .timeLimit(.minutes(10)), arguments: examples)
    func run(example: Example) async throws {
        let plan = plans[example.place] ?? Plan()
        try await World.with { world in
            async let beside: Void = plan.beside(world)
            if let call = plan.goesOnUntil {
                try await run(example, until: call, world)
            } else {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for copy in 0..<plan.copies {
                        group.addTask { try await World.$party.withValue(copy) { try await example.run() } }
                    }
                    try await group.waitForAll()
                }
            }
            try await beside
            if let call = plan.calls { #expect(world.hasCalled(call), "\(world.calls)") }
        }
    }

    /// Runs an example that goes on until it is cancelled.
    private func run(_ example: Example, until call: String, _ world: World) async throws {
        try await withThrowingTaskGroup(of: Bool.self) { group in
            group.addTask {
                try await example.run()
                return false
            }
            group.addTask {
                try await world.waitFor(call)
                return true
            }
            let works = try await group.next() ?? false
            #expect(works, "the example has ended by itself, before it did \"\(call)\": \(world.calls)")
            group.cancelAll()
            while !group.isEmpty { _ = await group.nextResult() }
        }
    }

    @Test("have no plans that none of them uses")
    func plansAreUsed() {
        let places = Set(examples.map(\.place))
        #expect(plans.keys.filter { !places.contains($0) }.isEmpty)
    }
}
