import ArgumentParser
import Foundation
import Hiredis
import RedisDCTesting

struct Demo: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run the rendezvous in separate processes and show the order of events.",
        discussion: """
            Uses the server of --redis or $REDIS_URL; without either it starts a private one. Exits with 70 if an order \
            was ever violated.
            """)
    @OptionGroup var global: GlobalOptions
    @Argument(help: "How many times to meet.") var rounds = 100
    @Option(help: "How many nodes meet. 2 are the classical A and B.") var nodes = 2

    func validate() throws {
        guard (1...1_000_000).contains(rounds) else { throw ValidationError("ROUNDS is between 1 and 1,000,000") }
        guard (2...64).contains(nodes) else { throw ValidationError("--nodes is between 2 and 64") }
    }

    func run() async throws {
        if global.url != nil || GlobalOptions.environmentURL != nil {
            try await run(global)
        } else {
            try await withLocalRedis { server in
                var options = global
                options.url = server.url
                if !global.json { print("Started a private Redis on port \(server.port).") }
                try await run(options)
            }
        }
    }

    private func run(_ options: GlobalOptions) async throws {
        let configuration = try options.configuration()
        let url = options.url ?? GlobalOptions.environmentURL ?? ""
        let name = "demo-\(ProcessInfo.processInfo.processIdentifier)-\(UInt32.random(in: 0...UInt32.max))"
        let group = NodeProcesses(url: url, run: name, rounds: rounds)
        let parts = nodes == 2 ? [["a"], ["b"]] : (1...nodes).map { ["\($0)", "of", "\(nodes)"] }
        try await options.withRedis { redis in
            if !options.json {
                print("Starting \(nodes) processes that meet \(rounds) times at \(configuration.endpoint).")
            }
            let pids = try group.start(parts)
            try await group.untilAllHaveEnded()
            let log = try await redis.send("LRANGE", .string("rdc:demo:\(name):log"), 0, -1)
            try await cleanUp(redis, name)
            let lanes = nodes == 2 ? ["a", "b"] : (1...nodes).map { "n\($0)." }
            let history = try History(log: log, lanes: lanes, rounds: rounds)
            if options.json {
                try options.report("", history.verdict)
            } else {
                print(Timeline(history: history, titles: zip(parts, pids).map { "\($0.0[0]) (process \($0.1))" }).text)
                print(history.verdict.sentence)
            }
            if !history.verdict.isRight { throw Failure(.software, "the order was violated") }
        }
    }

    private func cleanUp(_ redis: RedisClient, _ name: String) async throws {
        var semaphores = ["\(name):a-arrived", "\(name):b-arrived"]
        for node in 1...nodes { semaphores += ["\(name):0:n\(node)", "\(name):1:n\(node)"] }
        let keys = semaphores.flatMap { ["rdc:sem:\($0)", "rdc:sem-meta:{rdc:sem:\($0)}"] } + ["rdc:demo:\(name):log"]
        _ = try await redis.send(RedisCommand([.string("DEL")] + keys.map { .string($0) }))
    }
}
