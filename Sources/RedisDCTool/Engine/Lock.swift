import ArgumentParser
import CommandLineTool
import RedisDC

/// The `redisdc lock` command.
struct Lock: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run a command while holding a lock that at most one process of all machines has at a time.",
        usage: """
            redisdc lock NAME [--timeout SECONDS] [--ttl SECONDS] [--grace SECONDS] [--replicated N|--fsynced] \
            -- COMMAND…
            """,
        discussion: "Waiters acquire the lock in the order of their requests. \(HeldCommand.explanation)"
    )
    .examples(
        "redisdc lock backup --timeout 60 -- ./backup.sh", "redisdc lock payments --replicated 1 -- ./pay.sh")
    @OptionGroup var engine: EngineOptions
    @Argument(help: "The lock's name.") var name: String
    @OptionGroup var timeout: TimeoutOption
    @OptionGroup var durability: DurabilityOptions
    @OptionGroup var held: HeldCommand

    func validate() throws { try held.requireCommand() }

    func run() async throws {
        let program = try held.program()
        try await engine.withSession(ttl: held.ttlDuration, node: held.node) { coordinator in
            try await held.run(
                program,
                holding: coordinator.mutex(name).lock(
                    timeout: timeout.duration, durability: durability.durability))
        }
    }
}
