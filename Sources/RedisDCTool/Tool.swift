import ArgumentParser
import CommandLineTool

/// The `redisdc` command.
@main
struct Tool: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "redisdc",
        abstract: "Coordinate processes and exchange messages through Redis from the command line.",
        discussion: """
            Exit status: 0 success, 64 wrong usage, 65 invalid name or value, conflict with what is in Redis, or no such \
            semaphore or mailbox, 69 Redis not reachable, 73 the output cannot be written, 74 lease lost, 75 timed out or not \
            acquired, 77 not permitted, 70 any other failure, 130 interrupted, 141 the reader of the output has gone.
            """,
        version: "0.1.0",
        subcommands: [
            Demo.self, Lock.self, RWLock.self, Sem.self, Elect.self, BarrierCommand.self, LatchCommand.self, Rate.self,
            Inspect.self, Top.self, Release.self, Mail.self, Schedule.self, WorkCommand.self,
            PresenceCommand.self, Board.self, MatchCommand.self, Classic.self, Publish.self, Subscribe.self,
            Doctor.self,
            Verify.self, VerifyWorker.self,
        ]
    )

    static func main() async {
        let arguments = ArgumentText.ofProcess
        // The guard of a lease is this program too. No command has the name.
        if arguments.first == LeaseGuard.firstArgument { LeaseGuard.run(Array(arguments.dropFirst())) }
        await runTool(moveBehindCommand(arguments))
    }

    /// Moves global options that stand before the command's name behind it, where the parser
    /// expects them.
    private static func moveBehindCommand(_ arguments: [String]) -> [String] {
        let withValue = ["--redis", "--cacert", "--namespace", "--partitions"]
        var rest = arguments[...]
        var options: [String] = []
        while let first = rest.first {
            if first == "--json" || withValue.contains(where: { first.hasPrefix($0 + "=") }) {
                options.append(rest.removeFirst())
            } else if withValue.contains(first), rest.count > 1 {
                options += [rest.removeFirst(), rest.removeFirst()]
            } else {
                break
            }
        }
        let end = rest.firstIndex(of: "--") ?? rest.endIndex
        return rest[..<end] + options + rest[end...]
    }
}
