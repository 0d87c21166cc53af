import ArgumentParser
import RedisDC

struct Release: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Take a lock or a semaphore's permits away from who holds them, for operators.",
        discussion: """
            The holders are told, and their work is cancelled, but it may not have ended when the next in the queue \
            begins. `redisdc inspect` shows the holders and their ids.
            """)
    @OptionGroup var engine: EngineOptions
    @Argument(help: "The name of a lock or semaphore.") var name: String
    @Flag(help: "Yes, although its holder may be at work.") var force = false
    @Option(help: ArgumentHelp("Only from this holder, as inspect shows it.", valueName: "id")) var holder: String?

    private struct Report: Encodable {
        var name: String
        var released: Int
    }

    func run() async throws {
        guard force else {
            throw Failure(
                .usage,
                "who holds \"\(name)\" may be at work and need it: look with `redisdc inspect`, then say --force")
        }
        try await engine.withSession { coordinator in
            let count = try await coordinator.forceRelease(name, holder: holder)
            let nobody = holder == nil ? "nobody held it" : "no such holder"
            try engine.global.report(
                count == 0 ? nobody : "taken from \(count) holder\(count == 1 ? "" : "s")",
                Report(name: name, released: count))
        }
    }
}
