import ArgumentParser
import RedisDC

struct Sem: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Semaphores of the engine: safe through crashes, cancels, retries and lost replies.",
        discussion: "All but create want the semaphore to be there.",
        subcommands: [Create.self, Signal.self, Wait.self, Value.self, Resize.self, Destroy.self]
    )
}

/// The options and the semaphore that all these commands share.
private struct Target: ParsableArguments {
    @OptionGroup var engine: EngineOptions

    @Argument(help: "The semaphore's name.")
    var name: String

    func withSemaphore(
        permits: Int? = nil, ttl: Duration = .seconds(15), node: String = "redisdc",
        _ body: (Semaphore) async throws -> Void
    ) async throws {
        try await explaining {
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

    /// Says how to make a semaphore that is not there.
    func explaining(_ body: () async throws -> Void) async throws {
        do {
            try await body()
        } catch let error as RedisDCError where error.code == .notFound {
            throw Failure(
                .badData,
                "there is no semaphore \"\(name)\"; make it with: redisdc sem create \(name) --permits N\(engine.words)"
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
    var destroyed: Bool?
}

extension Sem {
    struct Create: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Create it with so many permits; once, whoever calls.")
        @OptionGroup private var target: Target
        @Option(help: "0 to 1,000,000.") var permits: Int

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
        static let configuration = CommandConfiguration(abstract: "Add permits, all at once.")
        @OptionGroup private var target: Target
        @Option(name: .customShort("n"), help: "1 to 1,000,000.") var count = 1

        func run() async throws {
            try await target.withSemaphore { semaphore in
                try await semaphore.signal(count)
                try target.report("signalled \(count)", Report(name: semaphore.name, signalled: count))
            }
        }
    }

    struct Wait: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Take permits, waiting for them; for good, or while a command runs.",
            usage: """
                redisdc sem wait NAME [-n N] [--timeout SECONDS]
                redisdc sem wait NAME [-n N] [--timeout SECONDS] --hold [--ttl SECONDS] [--grace SECONDS] -- COMMAND…
                """,
            discussion: """
                Without --hold, the permits are gone until someone signals; Ctrl-C gives back what may have been taken. \
                With it, they come back when the command has ended.

                \(HeldCommand.explanation)
                """)
        @OptionGroup private var target: Target
        @Option(name: .customShort("n"), help: "1 to 1,000,000, all at once.") var count = 1
        @OptionGroup var timeout: TimeoutOption
        @Flag(help: "Hold them while COMMAND runs.") var hold = false
        @OptionGroup var held: HeldCommand

        func validate() throws {
            if hold { try held.requireCommand() }
            if !hold, !held.command.isEmpty { throw ValidationError("a COMMAND goes with --hold") }
        }

        func run() async throws {
            if hold { try await runHolding() } else { try await consume() }
        }

        private func runHolding() async throws {
            let program = try held.program()
            try await target.withSemaphore(ttl: held.ttlDuration, node: held.node) { semaphore in
                try await held.run(program, holding: semaphore.acquireLease(count, timeout: timeout.duration))
            }
        }

        private func consume() async throws {
            try await target.withSemaphore { semaphore in
                do {
                    try await semaphore.wait(count, timeout: timeout.duration)
                    try target.report("acquired", Report(name: semaphore.name, acquired: true))
                } catch let error as RedisDCError where error.code == .timedOut && target.engine.global.json {
                    try target.report("", Report(name: semaphore.name, acquired: false))
                    throw error
                }
            }
        }
    }

    struct Value: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print how many permits there are now; below zero after shrinking.")
        @OptionGroup private var target: Target

        func run() async throws {
            try await target.explaining {
                try await target.engine.withObserver { coordinator in
                    let value = try await coordinator.existingSemaphore(target.name).value
                    try target.report("\(value)", Report(name: target.name, value: value))
                }
            }
        }
    }

    struct Resize: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Change how many permits there are in all.",
            discussion: "What is taken stays taken, so the value may fall below zero for a while.")
        @OptionGroup private var target: Target
        @Option(help: "0 to 1,000,000.") var permits: Int

        func run() async throws {
            try await target.withSemaphore { semaphore in
                try await semaphore.resize(to: permits)
                try target.report("has \(permits) permits", Report(name: semaphore.name, permits: permits))
            }
        }
    }

    struct Destroy: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Delete it and wake whoever waits. What is held stays held until it is released.")
        @OptionGroup private var target: Target

        func run() async throws {
            try await target.withSemaphore { semaphore in
                let destroyed = try await semaphore.destroy()
                try target.report(
                    destroyed ? "destroyed" : "there was none", Report(name: semaphore.name, destroyed: destroyed))
            }
        }
    }
}
