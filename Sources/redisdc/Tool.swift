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
            semaphore or mailbox, 69 Redis not reachable, 74 lease lost, 75 timed out or not acquired, 77 not permitted, \
            70 any other failure, 130 interrupted.
            """,
        version: "0.1.0",
        subcommands: [
            Demo.self, Lock.self, RWLock.self, Sem.self, Elect.self, BarrierCommand.self, LatchCommand.self, Rate.self,
            Inspect.self, Top.self, Release.self, Mail.self, PresenceCommand.self, Board.self, MatchCommand.self,
            Classic.self, Publish.self, Subscribe.self, Doctor.self, Verify.self, VerifyWorker.self,
        ]
    )

    static func main() async { await runTool(moveBehindCommand(Array(CommandLine.arguments.dropFirst()))) }

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
