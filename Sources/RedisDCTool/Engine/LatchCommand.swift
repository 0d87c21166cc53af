import ArgumentParser
import CommandLineTool
import RedisDC

/// The `redisdc latch` commands.
struct LatchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "latch",
        abstract: "Wait until something has been counted down to zero, once.",
        subcommands: [Down.self, Wait.self, Remaining.self, Destroy.self])
}

/// The options and the latch of a `latch` command.
private struct Target: ParsableArguments {
    @OptionGroup var engine: EngineOptions
    @Argument(help: "The latch's name.") var name: String
    @Option(help: "The number to count down from, 0 to 1,000,000; the same for all.") var count: Int

    func withLatch(_ body: (Latch) async throws -> Void) async throws {
        try await engine.withSession { coordinator in try await body(coordinator.latch(name, count: count)) }
    }

    func report(_ text: @autoclosure () -> String, _ report: Report) throws { try engine.global.report(text(), report) }
}

private struct Report: Encodable {
    var name: String
    var remaining: Int?
    var opened: Bool?
}

extension LatchCommand {
    struct Down: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Count down by one, and print the remaining count."
        )
        .examples("redisdc latch down imported --count 12 --id \"$SHARD\"")
        @OptionGroup private var target: Target
        @Option(help: "What is counted: an id counts once, however often it is sent.") var id: String?

        func run() async throws {
            try await target.withLatch { latch in
                let remaining = try await latch.countDown(id: id)
                try target.report("\(remaining)", Report(name: latch.name, remaining: remaining))
            }
        }
    }

    struct Wait: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Wait until the count is zero.")
            .examples("redisdc latch wait imported --count 12 && ./report.sh")
        @OptionGroup private var target: Target
        @OptionGroup var timeout: TimeoutOption

        func run() async throws {
            try await target.withLatch { latch in
                try await target.engine.global.reportWait(timedOut: Report(name: latch.name, opened: false)) {
                    try await latch.wait(timeout: timeout.duration)
                    try target.report("open", Report(name: latch.name, opened: true))
                }
            }
        }
    }

    struct Remaining: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Print the remaining count.")
            .examples("redisdc latch remaining imported --count 12")
        @OptionGroup private var target: Target

        func run() async throws {
            try await target.engine.withObserver { coordinator in
                let remaining = try await coordinator.latch(target.name, count: target.count).remaining
                try target.report("\(remaining)", Report(name: target.name, remaining: remaining))
            }
        }
    }

    struct Destroy: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Delete the latch; its waiters fail. The next operation creates it again."
        )
        .examples("redisdc latch destroy imported --count 12")
        @OptionGroup private var target: Target

        func run() async throws {
            try await target.withLatch { latch in
                try target.engine.global.reportDestroyed(await latch.destroy(), "latch", latch.name)
            }
        }
    }
}
