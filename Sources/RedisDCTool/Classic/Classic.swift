import ArgumentParser
import CommandLineTool
import Hiredis
import RedisDC

/// The `redisdc classic` commands.
struct Classic: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Semaphores that are plain Redis lists, shared with any program that calls LPUSH and BRPOP.",
        subcommands: [Create.self, Signal.self, Wait.self, Value.self, Destroy.self]
    )
}

/// The options and the semaphore of a `classic` command.
private struct Target: ParsableArguments {
    @OptionGroup var global: GlobalOptions

    @Option(help: "The namespace: the list is rdc:{NAMESPACE:sem:NAME}. (default: none)")
    var namespace: String?

    @Argument(help: "The semaphore's name. Its permits are the elements of the list rdc:sem:NAME.")
    var name: String

    func withSemaphore(_ body: (ClassicSemaphore) async throws -> Void) async throws {
        try await global.withRedis { try await body(ClassicSemaphore(name, redis: $0, namespace: namespace)) }
    }
}

private struct Report: Encodable {
    var name: String
    var value: Int?
    var created: Bool?
    var signalled: Int?
    var acquired: Bool?
}

extension Classic {
    struct Create: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Create a semaphore, unless it exists with the same number of permits."
        )
        .examples("redisdc classic create tables --permits 4")
        @OptionGroup private var target: Target
        @Option(help: "The number of permits, 0 to 1,000,000.") var permits: Int

        func run() async throws {
            try await target.withSemaphore { semaphore in
                let created = try await semaphore.create(permits: permits)
                try target.global.report(
                    created ? "created with \(permits) permits" : "exists with \(permits) permits",
                    Report(name: semaphore.name, created: created))
            }
        }
    }

    struct Signal: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Add permits in one step.")
            .examples("redisdc classic signal tables -n 2")
        @OptionGroup private var target: Target
        @Option(name: .customShort("n"), help: "The number of permits, 1 to 20,000.") var count = 1

        func run() async throws {
            try await target.withSemaphore { semaphore in
                try await semaphore.signal(count)
                try target.global.report("signalled \(count)", Report(name: semaphore.name, signalled: count))
            }
        }
    }

    struct Wait: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Wait for a permit and consume it.",
            discussion: "A wait that is interrupted with Ctrl-C returns a permit that it may have received."
        )
        .examples("redisdc classic wait tables --timeout 2.5")
        @OptionGroup private var target: Target
        @OptionGroup var timeout: TimeoutOption

        func run() async throws {
            try await target.withSemaphore { semaphore in
                try await target.global.reportWait(timedOut: Report(name: semaphore.name, acquired: false)) {
                    if let timeout = timeout.duration {
                        try await semaphore.wait(timeout: timeout)
                    } else {
                        try await semaphore.wait()
                    }
                    try target.global.report("acquired", Report(name: semaphore.name, acquired: true))
                }
            }
        }
    }

    struct Value: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Print the number of available permits.")
            .examples("redisdc classic value tables --json")
        @OptionGroup private var target: Target

        func run() async throws {
            try await target.withSemaphore { semaphore in
                let value = try await semaphore.value
                try target.global.report("\(value)", Report(name: semaphore.name, value: value))
            }
        }
    }

    struct Destroy: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Delete the semaphore; its waiters fail.")
            .examples("redisdc classic destroy tables")
        @OptionGroup private var target: Target

        func run() async throws {
            try await target.withSemaphore { semaphore in
                try target.global.reportDestroyed(await semaphore.destroy(), "semaphore", semaphore.name)
            }
        }
    }
}
