import Foundation
import Hiredis
import LittleBook
import RedisDC
import RedisDCTesting
import TestSupport
import Testing

/// The command that runs the problems.
@Suite("littlebook", .serialized)
struct ToolTests {
    private func littlebook(_ words: String..., url: String) throws -> Child {
        try Child("littlebook", words, environment: ["REDIS_URL": url])
    }

    /// The number of connections of a run's processes, each of which has its own.
    private func connections(_ redis: RedisClient) async throws -> Int {
        let list = try await redis.send("CLIENT", "LIST").string ?? ""
        return list.split(separator: "\n").count { $0.contains("name=redisdc-tool") }
    }

    @Test("without arguments it lists all problems, and it rejects an unknown name")
    func list() async throws {
        let end = try await Child("littlebook", []).end()
        #expect(end.status == 0)
        for problem in Book.problems { #expect(end.output.contains("  \(problem.name) ")) }
        let none = try await Child("littlebook", ["nosuch"]).end()
        #expect(none.status == 64)
    }

    @Test("a run that exceeds its time limit fails and reports the progress of each process")
    func limit() async throws {
        try await withLocalRedis { server in
            // Long enough for the processes to start on a busy machine.
            var end: Child.End
            var limit = 1
            repeat {
                end = try await littlebook("mutex", "--rounds", "100000", "--limit", "\(limit)", url: server.url).end()
                limit *= 4
            } while limit < 100 && end.output.contains("thread-2: 0 of")
            #expect(end.status == 1)
            #expect(end.output.contains(/thread-2: \d+ of 100000 rounds, last "(enters|leaves) \d+"/))
            #expect(end.output.contains("WRONG"))
        }
    }

    @Test("a run leaves no key in Redis")
    func cleanUp() async throws {
        try await withLocalRedis { server in
            let end = try await littlebook("reusable-barrier", "--rounds", "3", url: server.url).end()
            #expect(end.status == 0, "\(end.error)")
            try await withRedisClient(url: server.unixURL) { redis in
                let left = try await redis.send("KEYS", "*").array
                #expect(left == [])
            }
        }
    }

    @Test("players end with their runner, whether it is killed or interrupted")
    func leash() async throws {
        try await withLocalRedis { server in
            try await withRedisClient(url: server.unixURL) { redis in
                let runner = try littlebook("mutex", "--rounds", "100000", url: server.url)
                // The runner and three players have at least one connection each.
                try await until("all players are connected") { try await connections(redis) >= 4 }
                try await runner.kill9()
                try await until("no connection is left", within: .seconds(20)) { try await connections(redis) == 0 }
                let interrupted = try littlebook("mutex", "--rounds", "100000", url: server.url)
                try await until("all players are connected") { try await connections(redis) >= 4 }
                interrupted.interrupt()
                let end = try await interrupted.end()
                #expect(end.status == 130)
                try await until("no connection is left", within: .seconds(20)) { try await connections(redis) == 0 }
            }
        }
    }

    @Test("a restarted player waits until the session of its former life has ended")
    func lives() async throws {
        try await withLocalRedis { server in
            try await withRedisClient(url: server.unixURL) { redis in
                let run = Run(name: "r", processes: 1, rounds: 1)
                @Sendable func play(life: Int) async throws {
                    try await withCoordinator(redis: redis, namespace: run.name) { coordinator in
                        try await Player.play(
                            Standing(), as: "thread-1", life: life, in: run, coordinator: coordinator, redis: redis)
                    }
                }
                let first = Task { try await play(life: 1) }
                try await until("the first life plays") { try await run.read(redis).map(\.text) == ["thread-1 stands"] }
                try await run.recordDeath(of: "thread-1", nextLife: 2, redis)
                let second = Task { try await play(life: 2) }
                let observer = try Coordinator(redis: redis, namespace: run.name)
                try await until("the next life waits") {
                    try await observer.inspect("player thread-1")?.waiterCount == 1
                }
                let before = try await run.read(redis).count
                #expect(before == 2)
                first.cancel()
                try await until("the second life is back") {
                    try await run.read(redis).map(\.text).suffix(2) == ["thread-1 back", "thread-1 stands"]
                }
                second.cancel()
                _ = await (first.result, second.result)
            }
        }
    }

    @Test("a dead player cannot write to the log")
    func recordedDeath() async throws {
        try await withLocalRedis { server in
            try await withRedisClient(url: server.unixURL) { redis in
                let run = Run(name: "r", processes: 3, rounds: 1)
                try await run.write("enters 1", by: "thread-1", life: 1, redis)
                try await run.recordDeath(of: "thread-1", nextLife: 2, redis)
                try await run.write("leaves 1", by: "thread-1", life: 1, redis)
                try await run.write("back", by: "thread-1", life: 2, redis)
                let lines = try await run.read(redis).map(\.text)
                #expect(lines == ["thread-1 enters 1", "thread-1 killed", "thread-1 back"])
                try await run.cleanUp(redis)
                let left = try await redis.send("KEYS", "*").array
                #expect(left == [])
            }
        }
    }
}

/// A player that waits until the run is over.
private struct Standing: Problem {
    let name = "standing"
    let title = "One player waits"
    let chapter = Chapter.basics
    let processes = 1

    func cast(_ processes: Int) -> [Role] {
        [
            Role("thread", processes) { me in
                try await me.log("stands")
                try await me.coordinator.turnstile("closed").pass()
            }
        ]
    }

    func check(_ log: Log) -> [Invariant] { [] }
}
