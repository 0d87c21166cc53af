// The command that runs the problems of the Little Book of Semaphores.
import ArgumentParser
import Foundation
import Hiredis
import LittleBook
import RedisDCTesting

struct BookCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "book",
        abstract: "Run a problem of the Little Book of Semaphores in several processes, and judge it.",
        discussion: """
            Without a problem it lists them. Uses the server of --redis or $REDIS_URL; without either it starts a private \
            one. Exits with 1 if an invariant was violated, or if not everyone did their rounds in time.
            """)
    @OptionGroup var global: GlobalOptions
    @Argument(help: "Which problem.") var problem: String?
    @Flag(help: "Run all problems.") var all = false
    @Option(help: "How many processes play. (default: what suits the problem)") var processes: Int?
    @Option(help: "How many rounds each does.") var rounds = 10
    @Flag(help: "Kill one of the processes with -9 in the middle, and start it again.") var kill = false
    @Option(help: "Says who is killed when. (default: any)") var seed: UInt64?
    @Option(help: "Give up after so many seconds.") var limit = 30.0

    func validate() throws {
        guard (1...100_000).contains(rounds) else { throw ValidationError("--rounds is between 1 and 100,000") }
        guard limit > 0, limit < 1e6 else { throw ValidationError("--limit is a number of seconds") }
        if all, problem != nil { throw ValidationError("--all goes without a problem") }
        for problem in try chosen() {
            guard (problem.fewest...64).contains(processes ?? problem.processes) else {
                throw ValidationError("\(problem.name) takes \(problem.fewest) to 64 processes")
            }
        }
    }

    func run() async throws {
        let problems = try chosen()
        guard !problems.isEmpty else { return try list() }
        if global.url != nil || GlobalOptions.environmentURL != nil {
            try await run(problems, global)
        } else {
            try await withLocalRedis { server in
                var options = global
                options.url = server.url
                try await run(problems, options)
            }
        }
    }

    private func chosen() throws -> [any Problem] {
        if all { return Book.problems }
        guard let name = problem else { return [] }
        guard let problem = Book.problem(name) else {
            throw ValidationError("the book has no problem \"\(name)\"; `redisdc book` lists them")
        }
        return [problem]
    }

    private func list() throws {
        if global.json { return try Book.problems.forEach { try global.report("", BookReport.Heading($0)) } }
        let width = Book.problems.map(\.name.count).max() ?? 0
        for chapter in Chapter.allCases {
            let problems = Book.problems.filter { $0.chapter == chapter }
            if !problems.isEmpty { print("\n\(chapter.rawValue)\n") }
            for problem in problems {
                print("  \(problem.name.padding(toLength: width, withPad: " ", startingAt: 0))  \(problem.title)")
            }
        }
        print("\nredisdc book PROBLEM runs one, redisdc book --all runs all.")
    }

    private func run(_ problems: [any Problem], _ options: GlobalOptions) async throws {
        var wrong: [String] = []
        try await options.withRedis { redis in
            for problem in problems {
                let name = "book-\(ProcessInfo.processInfo.processIdentifier)-\(UInt32.random(in: 0...UInt32.max))"
                let stage = BookRun(
                    problem: problem,
                    run: Run(name: name, processes: processes ?? problem.processes, rounds: rounds),
                    seed: kill ? seed ?? UInt64(UInt32.random(in: 0...UInt32.max)) : nil, limit: .seconds(limit),
                    options: options)
                let report = try await stage.perform(redis)
                try options.report(all ? report.summary : report.text, report.json)
                if !report.isRight { wrong.append(problem.name) }
            }
        }
        if all, !options.json { print("\(problems.count - wrong.count) of \(problems.count) right") }
        if !wrong.isEmpty { throw ExitCode(1) }
    }
}
