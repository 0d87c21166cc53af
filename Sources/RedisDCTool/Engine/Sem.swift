import ArgumentParser
import CommandLineTool
import RedisDC

/// The `redisdc sem` commands.
struct Sem: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Semaphores that survive crashes, cancellation, retries and lost replies.",
        discussion: "All subcommands except create require an existing semaphore.",
        subcommands: [Create.self, Signal.self, Wait.self, Value.self, Resize.self, Destroy.self]
    )
}

/// The options and the semaphore of a `sem` command.
private struct Target: ParsableArguments {
    @OptionGroup var engine: EngineOptions

    @Argument(help: "The semaphore's name.")
    var name: String

    func withSemaphore(
        permits: Int? = nil, ttl: Duration = .seconds(15), node: String = "redisdc",
        _ body: (Semaphore) async throws -> Void
    ) async throws {
        try await explainingNotFound {
            try await engine.withSession(ttl: ttl, node: node) { coordinator in
                let semaphore =
                    if let permits {
                        try coordinator.semaphore(name, permits: permits)
                    } else {
                        try coordinator.existingSemaphore(name)
                    }
                try await body(semaphore)
            }
        }
    }

    /// Replaces `.notFound` by an error that says how to create the semaphore.
    func explainingNotFound(_ body: () async throws -> Void) async throws {
        do {
            try await body()
        } catch let error as RedisDCError where error.code == .notFound {
            throw Failure(
                .badData,
                "there is no semaphore \"\(name)\"; create it with: redisdc sem create \(name) --permits N\(engine.namespaceOption)"
            )
        }
    }

    func report(_ text: @autoclosure () -> String, _ report: Report) throws { try engine.global.report(text(), report) }
}

private struct Report: Encodable {
    var name: String
    var value: Int?
    var created: Bool?
    var signalled: Int?
    var acquired: Bool?
    var permits: Int?
}

extension Sem {
    struct Create: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Create a semaphore, unless it exists with the same number of permits."
        )
        .examples("redisdc sem create seats --permits 4")
        @OptionGroup private var target: Target
        @Option(help: "The number of permits, 0 to 1,000,000.") var permits: Int

        func run() async throws {
            try await target.withSemaphore(permits: permits) { semaphore in
                let created = try await semaphore.create()
                try target.report(
                    created ? "created with \(permits) permits" : "exists with \(permits) permits",
                    Report(name: semaphore.name, created: created))
            }
        }
    }

    struct Signal: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Add permits in one step.")
            .examples("redisdc sem signal seats -n 2")
        @OptionGroup private var target: Target
        @Option(name: .customShort("n"), help: "The number of permits, 1 to 1,000,000.") var count = 1
        @OptionGroup var durability: DurabilityOptions

        func run() async throws {
            try await target.withSemaphore { semaphore in
                try await semaphore.signal(count, durability: durability.durability)
                try target.report("signalled \(count)", Report(name: semaphore.name, signalled: count))
            }
        }
    }

    struct Wait: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Wait for permits and consume them, or hold them while a command runs.",
            usage: """
                redisdc sem wait NAME [-n N] [--timeout SECONDS]
                redisdc sem wait NAME [-n N] [--timeout SECONDS] --hold [--ttl SECONDS] [--grace SECONDS] \
                    [--replicated N|--fsynced] -- COMMAND…
                """,
            discussion: """
                Without --hold, the permits are consumed; `redisdc sem signal` adds permits back. A wait that is \
                interrupted with Ctrl-C consumes nothing. With --hold, the permits are released when the command ends.

                \(HeldCommand.explanation)
                """
        )
        .examples("redisdc sem wait seats --hold -- ./render.sh")
        @OptionGroup private var target: Target
        @Option(
            name: .customShort("n"), help: "The number of permits, 1 to 1,000,000; all are acquired at once or none.")
        var count = 1
        @OptionGroup var timeout: TimeoutOption
        @Flag(help: "Hold the permits while COMMAND runs, instead of consuming them.") var hold = false
        @OptionGroup var durability: DurabilityOptions
        @OptionGroup var held: HeldCommand

        func validate() throws {
            if hold { try held.requireCommand() }
            if !hold, !held.command.isEmpty { throw ValidationError("a COMMAND requires --hold") }
            if !hold, durability.isRequested {
                throw ValidationError("--replicated and --fsynced require --hold")
            }
        }

        func run() async throws {
            if hold { try await runHolding() } else { try await consume() }
        }

        private func runHolding() async throws {
            let program = try held.program()
            try await target.withSemaphore(ttl: held.ttlDuration, node: held.node) { semaphore in
                try await held.run(
                    program,
                    holding: semaphore.acquireLease(
                        count, timeout: timeout.duration, durability: durability.durability))
            }
        }

        private func consume() async throws {
            try await target.withSemaphore { semaphore in
                try await target.engine.global.reportWait(timedOut: Report(name: semaphore.name, acquired: false)) {
                    try await semaphore.wait(count, timeout: timeout.duration)
                    try target.report("acquired", Report(name: semaphore.name, acquired: true))
                }
            }
        }
    }

    struct Value: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print the number of available permits; negative after resize has removed held ones."
        )
        .examples("redisdc sem value seats")
        @OptionGroup private var target: Target

        func run() async throws {
            try await target.explainingNotFound {
                try await target.engine.withObserver { coordinator in
                    let value = try await coordinator.existingSemaphore(target.name).value
                    try target.report("\(value)", Report(name: target.name, value: value))
                }
            }
        }
    }

    struct Resize: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Change the total number of permits.",
            discussion: "Permits that are held stay held, so the value may be negative for a while."
        )
        .examples("redisdc sem resize seats --permits 6")
        @OptionGroup private var target: Target
        @Option(help: "The number of permits, 0 to 1,000,000.") var permits: Int

        func run() async throws {
            try await target.withSemaphore { semaphore in
                try await semaphore.resize(to: permits)
                try target.report("has \(permits) permits", Report(name: semaphore.name, permits: permits))
            }
        }
    }

    struct Destroy: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Delete the semaphore; its waiters fail. Held permits stay held until they are released."
        )
        .examples("redisdc sem destroy seats")
        @OptionGroup private var target: Target

        func run() async throws {
            try await target.withSemaphore { semaphore in
                try target.engine.global.reportDestroyed(await semaphore.destroy(), "semaphore", semaphore.name)
            }
        }
    }
}
