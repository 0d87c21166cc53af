import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import GameServices
@testable import GameServicesTestSupport

extension GameServicesTests {
    @Suite("Repeated submits of a leaderboard")
    struct LeaderboardRetryTests {
        @Test("a submit whose reply is lost counts once, with and without an id", arguments: [nil, "run-1"])
        func lostReply(id: String?) async throws {
            try await withLocalRedis { server in
                let proxy = try await FaultProxy.start(to: .port(server.port))
                var client = try RedisConfiguration(url: "redis://127.0.0.1:\(proxy.port)")
                client.commandTimeout = .seconds(120)
                try await withRedisClient(client) { redis in
                    var configuration = LeaderboardConfiguration()
                    configuration.mode = .sum
                    // The first attempt gets half of it, and is bounded by the broken connection.
                    configuration.callTimeout = .seconds(240)
                    let board = try Leaderboard("maze", redis: redis, configuration: configuration)
                    try await board.submit(1, for: "bob")
                    await proxy.dropNextReply(matching: "EVALSHA")
                    let placement = try await board.submit(5, for: "alice", id: id).placements[.allTime]
                    #expect(placement?.score == 5)
                    #expect(try await board.entry(of: "alice")?.score == 5)
                }
                await proxy.stop()
            }
        }

        @Test("the answer is kept for the lifetime of the id, and that of an own id for a minute")
        func lifetime() async throws {
            // An own id is kept for four times as long as a call may last, and at least a minute.
            try await withBoard(configure: { $0.callTimeout = .seconds(10) }) { board, redis, _ in
                let ids = [try await board.submit(1, for: "a", id: "x").id, try await board.submit(1, for: "a").id]
                for (id, seconds) in zip(ids, [3600, 60]) {
                    let ttl = try await redis.send("PTTL", .string(board.keys.key("id:\(id)"))).integer!
                    #expect(ttl > (seconds - 50) * 1000 && ttl <= seconds * 1000)
                }
            }
        }
    }
}
