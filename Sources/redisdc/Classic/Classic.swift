import ArgumentParser
import Hiredis
import RedisDC

struct Classic: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Classic semaphores: lists of permits, shared with any program that can LPUSH and BRPOP.",
        subcommands: [Create.self, Signal.self, Wait.self, Value.self, Destroy.self]
    )
}

/// The options and the semaphore that all these commands share.
private struct Target: ParsableArguments {
    @OptionGroup var global: GlobalOptions

    @Argument(help: "The semaphore's name. Its permits are the list rdc:sem:NAME.")
    var name: String

    func withSemaphore(_ body: (ClassicSemaphore) async throws -> Void) async throws {
        let name = name
        try await global.withRedis { try await body(ClassicSemaphore(name, redis: $0)) }
    }
}

private struct Report: Encodable {
    var name: String
    var value: Int?
    var created: Bool?
    var signalled: Int?
    var acquired: Bool?
    var destroyed: Bool?
}

extension Classic {
    struct Create: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Create it with so many permits; once, whoever calls.")
        @OptionGroup private var target: Target
        @Option(help: "0 to 1,000,000.") var permits: Int

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
        static let configuration = CommandConfiguration(abstract: "Add permits, all at once.")
        @OptionGroup private var target: Target
        @Option(name: .customShort("n"), help: "1 to 1,000,000.") var count = 1

        func run() async throws {
            try await target.withSemaphore { semaphore in
                try await semaphore.signal(count)
                try target.global.report("signalled \(count)", Report(name: semaphore.name, signalled: count))
            }
        }
    }

    struct Wait: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Take a permit, waiting for it.", discussion: "Ctrl-C gives back what may have been taken.")
        @OptionGroup private var target: Target
        @Option(help: "Wait at most so many seconds; decimals allowed, 0 tries once. (default: for ever)")
        var timeout: Double?

        func validate() throws {
            if let timeout, !(timeout >= 0 && timeout < 1e9) {
                throw ValidationError("--timeout is a number of seconds, 0 or more")
            }
        }

        func run() async throws {
            try await target.withSemaphore { semaphore in
                do {
                    if let timeout {
                        try await semaphore.wait(timeout: .seconds(timeout))
                    } else {
                        try await semaphore.wait()
                    }
                    try target.global.report("acquired", Report(name: semaphore.name, acquired: true))
                } catch let error as RedisDCError where error.code == .timedOut && target.global.json {
                    try target.global.report("", Report(name: semaphore.name, acquired: false))
                    throw error
                }
            }
        }
    }

    struct Value: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Print how many permits there are now.")
        @OptionGroup private var target: Target

        func run() async throws {
            try await target.withSemaphore { semaphore in
                let value = try await semaphore.value
                try target.global.report("\(value)", Report(name: semaphore.name, value: value))
            }
        }
    }

    struct Destroy: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Delete it and wake whoever waits.")
        @OptionGroup private var target: Target

        func run() async throws {
            try await target.withSemaphore { semaphore in
                let destroyed = try await semaphore.destroy()
                try target.global.report(
                    destroyed ? "destroyed" : "there was none", Report(name: semaphore.name, destroyed: destroyed))
            }
        }
    }
}
