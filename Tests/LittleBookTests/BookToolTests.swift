import Foundation
import Hiredis
import LittleBook
import RedisDC
import RedisDCTesting
import TestSupport
import Testing

/// The command around the problems.
@Suite("redisdc book", .serialized)
struct BookToolTests {
    private func book(_ words: String..., url: String) throws -> Child {
        try Child("redisdc", ["book"] + words, environment: ["REDIS_URL": url])
    }

    /// Whether processes of a run live: each has a connection of its own.
    private func connections(_ redis: RedisClient) async throws -> Int {
        let list = try await redis.send("CLIENT", "LIST").string ?? ""
        return list.split(separator: "\n").count { $0.contains("name=redisdc-tool") }
    }

    @Test("lists all problems, and knows no others")
    func list() async throws {
        let end = try await Child("redisdc", ["book"]).end()
        #expect(end.status == 0)
        for problem in Book.problems { #expect(end.output.contains("  \(problem.name) ")) }
        let none = try await Child("redisdc", ["book", "nosuch"]).end()
        #expect(none.status == 64)
    }

    @Test("a run that takes too long fails, and says who stands where")
    func limit() async throws {
        try await withLocalRedis { server in
            // Long enough for the processes to begin, on a busy machine too.
            var end: Child.End
            var limit = 1
            repeat {
                end = try await book("mutex", "--rounds", "100000", "--limit", "\(limit)", url: server.url).end()
                limit *= 4
            } while limit < 100 && end.output.contains("thread-2: 0 of")
            #expect(end.status == 1)
            #expect(end.output.contains(/thread-2: \d+ of 100000 rounds, last "(enters|leaves) \d+"/))
            #expect(end.output.contains("WRONG"))
        }
    }

    @Test("nothing of a run stays in Redis")
    func cleanUp() async throws {
        try await withLocalRedis { server in
            let end = try await book("reusable-barrier", "--rounds", "3", url: server.url).end()
            #expect(end.status == 0, "\(end.error)")
            try await withRedisClient(url: server.unixURL) { redis in
                let left = try await redis.send("KEYS", "*").array
                #expect(left == [])
            }
        }
    }

    @Test("no player outlives its runner, however that ends")
    func leash() async throws {
        try await withLocalRedis { server in
            try await withRedisClient(url: server.unixURL) { redis in
                let runner = try book("mutex", "--rounds", "100000", url: server.url)
                // A runner, and at least a connection for each of three players.
                try await until("all play") { try await connections(redis) >= 4 }
                try await runner.kill9()
                try await until("none is left", within: .seconds(20)) { try await connections(redis) == 0 }
                let interrupted = try book("mutex", "--rounds", "100000", url: server.url)
                try await until("all play") { try await connections(redis) >= 4 }
                interrupted.interrupt()
                let end = try await interrupted.end()
                #expect(end.status == 130)
                try await until("none is left", within: .seconds(20)) { try await connections(redis) == 0 }
            }
        }
    }

    @Test("a next life begins when the session of the one before is over, and not sooner")
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
                try await until("it plays") { try await run.read(redis).map(\.text) == ["thread-1 stands"] }
                try await run.bury("thread-1", nextLife: 2, redis)
                let second = Task { try await play(life: 2) }
                let observer = try Coordinator(redis: redis, namespace: run.name)
                try await until("the next life waits") {
                    try await observer.inspect("player thread-1")?.waiterCount == 1
                }
                let before = try await run.read(redis).count
                #expect(before == 2)
                first.cancel()
                try await until("it is back") {
                    try await run.read(redis).map(\.text).suffix(2) == ["thread-1 back", "thread-1 stands"]
                }
                second.cancel()
                _ = await (first.result, second.result)
            }
        }
    }

    @Test("the dead do not write")
    func bury() async throws {
        try await withLocalRedis { server in
            try await withRedisClient(url: server.unixURL) { redis in
                let run = Run(name: "r", processes: 3, rounds: 1)
                try await run.write("enters 1", by: "thread-1", life: 1, redis)
                try await run.bury("thread-1", nextLife: 2, redis)
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

/// Someone who stands there until the run is over.
private struct Standing: Problem {
    let name = "standing"
    let title = "One stands there"
    let chapter = Chapter.basics
    let processes = 1

    func cast(_ processes: Int) -> [Role] {
        [
            Role("thread", processes) { me in
                try await me.log("stands")
                try await me.coordinator.turnstile("for ever").pass()
            }
        ]
    }

    func check(_ log: Log) -> [Invariant] { [] }
}
