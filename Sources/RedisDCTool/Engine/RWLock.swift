import ArgumentParser
import CommandLineTool
import RedisDC

/// The `redisdc rwlock` command.
struct RWLock: AsyncParsableCommand {
    /// The kind of access.
    enum Access: String, EnumerableFlag {
        case read, write

        static func help(for access: Access) -> ArgumentHelp? {
            switch access {
            case .read: "Hold the lock together with other readers."
            case .write: "Hold the lock alone."
            }
        }
    }

    static let configuration = CommandConfiguration(
        commandName: "rwlock",
        abstract: "Run a command while holding a read-write lock: many readers together, or one writer alone.",
        usage: """
            redisdc rwlock NAME --read|--write [--timeout SECONDS] [--ttl SECONDS] [--grace SECONDS] \
            [--replicated N|--fsynced] -- COMMAND…
            """,
        discussion: """
            Waiters acquire the lock in the order of their requests. Readers that come one after the other hold it \
            together.

            \(HeldCommand.explanation)
            """
    )
    .examples("redisdc rwlock catalogue --read -- ./export.sh", "redisdc rwlock catalogue --write -- ./import.sh")
    @OptionGroup var engine: EngineOptions
    @Argument(help: "The lock's name.") var name: String
    @Flag var access: Access
    @OptionGroup var timeout: TimeoutOption
    @OptionGroup var durability: DurabilityOptions
    @OptionGroup var held: HeldCommand

    func validate() throws { try held.requireCommand() }

    func run() async throws {
        let program = try held.program()
        try await engine.withSession(ttl: held.ttlDuration, node: held.node) { coordinator in
            let lock = try coordinator.readWriteLock(name)
            let lease =
                switch access {
                case .read: try await lock.readLock(timeout: timeout.duration, durability: durability.durability)
                case .write: try await lock.writeLock(timeout: timeout.duration, durability: durability.durability)
                }
            try await held.run(program, holding: lease)
        }
    }
}
