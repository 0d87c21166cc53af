// The command that runs the problems of the Little Book of Semaphores.
import ArgumentParser
import CommandLineTool
import Foundation
import Hiredis
import LittleBook

/// The `littlebook` command.
@main
struct LittleBookTool: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "littlebook",
        abstract: "Run problems of the Little Book of Semaphores in several processes and check the results.",
        discussion: """
            Without a problem, lists all problems. Uses the server of --redis or $REDIS_URL; without either, starts a \
            private server for the run.

            Exit status: 0 all invariants hold, 1 an invariant was violated or a process did not finish its rounds in \
            time, 64 wrong usage, 69 Redis not reachable, 73 the output cannot be written, 77 not permitted, 70 any other \
            failure, 130 interrupted, 141 the reader of the output has gone.
            """)
    @OptionGroup var global: GlobalOptions
    @Argument(help: "The name of a problem.") var problem: String?
    @Flag(help: "Run all problems.") var all = false
    @Option(help: "The number of processes, up to 64. (default: depends on the problem)") var processes: Int?
    @Option(help: "The number of rounds of each process, 1 to 100,000.") var rounds = 10
    @Flag(help: "Kill one of the processes with SIGKILL during the run, and restart it.") var kill = false
    @Option(help: "With --kill, determines which process is killed and when. (default: random)") var seed: UInt64?
    @Option(help: "The maximum duration of a run, in seconds.") var limit = 300.0

    static func main() async {
        let arguments = ArgumentText.ofProcess
        // The processes of a run are this program too. No problem has the name of that command.
        if arguments.first == PlayerCommand.firstArgument {
            await PlayerCommand.runTool(Array(arguments.dropFirst()))
        } else {
            await runTool(arguments)
        }
    }

    func validate() throws {
        guard (1...100_000).contains(rounds) else { throw ValidationError("--rounds must be 1 to 100,000") }
        guard limit > 0, limit < 1e6 else {
            throw ValidationError("--limit must be a number of seconds between 0 and 1,000,000")
        }
        if all, problem != nil { throw ValidationError("give either a problem or --all") }
        for problem in try chosen() {
            guard (problem.minProcesses...64).contains(processes ?? problem.processes) else {
                throw ValidationError("--processes must be \(problem.minProcesses) to 64 for \(problem.name)")
            }
        }
    }

    func run() async throws {
        let problems = try chosen()
        guard !problems.isEmpty else { return try list() }
        try await global.withServer { options, _ in try await run(problems, options) }
    }

    private func chosen() throws -> [any Problem] {
        if all { return Book.problems }
        guard let name = problem else { return [] }
        guard let problem = Book.problem(name) else {
            throw ValidationError("there is no problem \"\(name)\"; `littlebook` lists all problems")
        }
        return [problem]
    }

    private func list() throws {
        if global.json {
            for problem in Book.problems { try global.report("", Report.Heading(problem)) }
            return
        }
        let width = Book.problems.map(\.name.count).max() ?? 0
        for chapter in Chapter.allCases {
            let problems = Book.problems.filter { $0.chapter == chapter }
            if !problems.isEmpty { try StandardOutput.write(line: "\n\(chapter.rawValue)\n") }
            for problem in problems {
                let name = problem.name.padding(toLength: width, withPad: " ", startingAt: 0)
                try StandardOutput.write(line: "  \(name)  \(problem.title)")
            }
        }
        try StandardOutput.write(line: "\nlittlebook PROBLEM runs one problem, littlebook --all runs all.")
    }

    private func run(_ problems: [any Problem], _ options: GlobalOptions) async throws {
        var wrong: [String] = []
        try await options.withRedis { redis in
            for problem in problems {
                let name = "book-\(ProcessInfo.processInfo.processIdentifier)-\(UInt32.random(in: 0...UInt32.max))"
                let run = ProblemRun(
                    problem: problem,
                    run: Run(name: name, processes: processes ?? problem.processes, rounds: rounds),
                    seed: kill ? seed ?? UInt64(UInt32.random(in: 0...UInt32.max)) : nil, limit: .seconds(limit),
                    options: options)
                let report = try await run.perform(redis)
                try options.report(all ? report.summary : report.text, report.json)
                if !report.isRight { wrong.append(problem.name) }
            }
        }
        if all, !options.json {
            try StandardOutput.write(line: "\(problems.count - wrong.count) of \(problems.count) right")
        }
        if !wrong.isEmpty { throw ExitCode(1) }
    }
}
