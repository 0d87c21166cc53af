import ArgumentParser
import Dispatch
import Foundation

/// The `redisdc` command.
@main
struct Tool: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "redisdc",
        abstract: "Coordinate and message through Redis from the command line.",
        discussion: """
            Exit status: 0 done, 64 wrong usage, 65 bad name, conflicting permits or no such semaphore, 69 Redis not \
            reachable, 74 lost while held, 75 timed out or not acquired, 77 not permitted, 70 any other failure, \
            130 interrupted.
            """,
        subcommands: [
            Demo.self, Sem.self, Lock.self, Inspect.self, Top.self, Release.self, Mail.self, Classic.self,
            Publish.self, Subscribe.self, Doctor.self, BookCommand.self, BookPlayer.self,
        ]
    )

    static func main() async {
        let work = Task {
            var command = try parseAsRoot(GlobalOptions.moveBehindCommand(Array(CommandLine.arguments.dropFirst())))
            if var asynchronous = command as? any AsyncParsableCommand {
                try await asynchronous.run()
            } else {
                try command.run()
            }
        }
        // An interrupted wait must give back what it may have taken, so the signal cancels instead of killing.
        let signals = [SIGINT, SIGTERM].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number)
            source.setEventHandler { @Sendable in work.cancel() }
            source.resume()
            return source
        }
        let result = await work.result
        signals.forEach { $0.cancel() }
        if case .failure(let error) = result { Failure.exit(error) }
    }
}
