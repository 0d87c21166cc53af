import ArgumentParser
import CommandLineTool
import RedisDC

/// The `redisdc release` command.
struct Release: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Release a lock or a semaphore's permits in place of their holders.",
        discussion: """
            A tool for operators. The holders are notified and their work is cancelled, but the next waiter may start \
            before that work has ended. `redisdc inspect` shows the holders and their ids.
            """
    )
    .examples("redisdc release --force backup")
    @OptionGroup var engine: EngineOptions
    @Argument(help: "The name of a lock or semaphore.") var name: String
    @Flag(help: "Required, because a holder may still be working.") var force = false
    @Option(help: ArgumentHelp("Release only what this holder has, by its id in inspect.", valueName: "id")) var holder:
        String?

    private struct Report: Encodable {
        var name: String
        var released: Int
    }

    func run() async throws {
        guard force else {
            throw Failure(
                .usage,
                "cannot release \"\(name)\" without --force: its holders may still be working; see `redisdc inspect`")
        }
        try await engine.withSession { coordinator in
            let count = try await coordinator.forceRelease(name, holder: holder)
            let none = holder == nil ? "no holders" : "no such holder"
            try engine.global.report(
                count == 0 ? none : "released for \(count) holder\(count == 1 ? "" : "s")",
                Report(name: name, released: count))
        }
    }
}
