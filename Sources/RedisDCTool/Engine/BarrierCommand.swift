import ArgumentParser
import CommandLineTool
import RedisDC

/// The `redisdc barrier` commands.
struct BarrierCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "barrier",
        abstract: "Wait until a number of processes have arrived, again and again.",
        subcommands: [Wait.self, Destroy.self])
}

/// The options and the barrier of a `barrier` command.
private struct Target: ParsableArguments {
    @OptionGroup var engine: EngineOptions
    @Argument(help: "The barrier's name.") var name: String
    @Option(help: "The number of processes that must arrive, 1 to 1,024; the same for all.") var parties: Int
    @Flag(help: "A party that gives up or dies breaks the barrier, until it is destroyed.") var breaks = false

    func withBarrier(ttl: Duration = .seconds(15), _ body: (Barrier) async throws -> Void) async throws {
        try await engine.withSession(ttl: ttl) { coordinator in
            try await body(
                coordinator.barrier(name, parties: parties, failure: breaks ? .breaks : .removesParty))
        }
    }
}

private struct Report: Encodable {
    var name: String
    var opened: Bool?
    var generation: UInt64?
    var index: Int?
}

extension BarrierCommand {
    struct Wait: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Arrive, and wait until all parties have arrived.",
            discussion: """
                Prints how often the barrier had opened before, and the place of this process among those that have \
                arrived, from 0. A wait that times out or is interrupted takes its party back, unless --breaks is used.
                """
        )
        .examples("redisdc barrier wait deployed --parties 3 && ./switch-over.sh")
        @OptionGroup private var target: Target
        @OptionGroup var timeout: TimeoutOption

        func run() async throws {
            try await target.withBarrier { barrier in
                try await target.engine.global.reportWait(timedOut: Report(name: barrier.name, opened: false)) {
                    let arrival = try await barrier.arriveAndWait(timeout: timeout.duration)
                    try target.engine.global.report(
                        "opened: generation \(arrival.generation), place \(arrival.index)",
                        Report(
                            name: barrier.name, opened: true, generation: arrival.generation, index: arrival.index))
                }
            }
        }
    }

    struct Destroy: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Delete the barrier, broken or not; its waiters fail. The next arrival creates it again."
        )
        .examples("redisdc barrier destroy deployed --parties 3")
        @OptionGroup private var target: Target

        func run() async throws {
            try await target.withBarrier { barrier in
                try target.engine.global.reportDestroyed(await barrier.destroy(), "barrier", barrier.name)
            }
        }
    }
}
