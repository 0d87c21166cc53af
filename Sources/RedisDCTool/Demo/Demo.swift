import ArgumentParser
import CommandLineTool
import Foundation
import Hiredis

/// The `redisdc demo` command.
struct Demo: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run the rendezvous example in separate processes and show the order of events.",
        discussion: """
            Uses the server of --redis or $REDIS_URL; without either, starts a private server. The program rendezvous \
            must be in the same directory as redisdc. Exits with 70 if the order was violated.
            """
    )
    .examples("redisdc demo 1000 --nodes 5 --html demo.html")
    @OptionGroup var global: GlobalOptions
    @Argument(help: "The number of meetings, 1 to 1,000,000.") var rounds = 100
    @Option(help: "The number of processes, 2 to 64. With 2, they are the textbook's A and B.") var nodes = 2
    @Option(help: ArgumentHelp("Write a page with a picture of the order to a file.", valueName: "file"))
    var html: String?

    func validate() throws {
        guard (1...1_000_000).contains(rounds) else { throw ValidationError("ROUNDS must be 1 to 1,000,000") }
        guard (2...64).contains(nodes) else { throw ValidationError("--nodes must be 2 to 64") }
    }

    func run() async throws {
        try await global.withServer { options, privatePort in
            if let privatePort, !options.json {
                try StandardOutput.write(line: "Started a private Redis server on port \(privatePort).")
            }
            try await run(options)
        }
    }

    private func run(_ options: GlobalOptions) async throws {
        let configuration = try options.configuration()
        let name = "demo-\(ProcessInfo.processInfo.processIdentifier)-\(UInt32.random(in: 0...UInt32.max))"
        let group = NodeProcesses(url: options.url ?? "", run: name, rounds: rounds)
        let parts = nodes == 2 ? [["a"], ["b"]] : (1...nodes).map { ["\($0)", "of", "\(nodes)"] }
        try await options.withRedis { redis in
            if !options.json {
                try StandardOutput.write(
                    line: "Starting \(nodes) processes that meet \(rounds) times at \(configuration.endpoint).")
            }
            let pids = try group.start(parts)
            try await group.untilAllHaveEnded()
            let log = try await redis.send("LRANGE", .string("rdc:demo:\(name):log"), 0, -1)
            try await cleanUp(redis, name)
            let lanes = nodes == 2 ? ["a", "b"] : (1...nodes).map { "n\($0)." }
            let history = try History(log: log, lanes: lanes, rounds: rounds)
            let titles = zip(parts, pids).map { "\($0.0[0]) (process \($0.1))" }
            if let html {
                do {
                    let page = HistoryPicture(history: history, titles: titles).page
                    try page.write(toFile: html, atomically: true, encoding: .utf8)
                } catch { throw Failure(.badData, "cannot write \(html): \(error.localizedDescription)") }
            }
            let timeline = HistoryTimeline(history: history, titles: titles)
            try options.report(timeline.text + "\n" + history.verdict.sentence, history.verdict)
            if !history.verdict.isRight { throw Failure(.software, "the order of events was violated") }
        }
    }

    private func cleanUp(_ redis: RedisClient, _ name: String) async throws {
        var semaphores = ["\(name):a-arrived", "\(name):b-arrived"]
        for node in 1...nodes { semaphores += ["\(name):0:n\(node)", "\(name):1:n\(node)"] }
        let keys = semaphores.flatMap { ["rdc:sem:\($0)", "rdc:sem-meta:{rdc:sem:\($0)}"] } + ["rdc:demo:\(name):log"]
        // One command for each key: in a cluster they are in several slots.
        _ = try await redis.pipeline(keys.map { ["DEL", .string($0)] })
    }
}
