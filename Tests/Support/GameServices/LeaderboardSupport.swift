// Helpers that the tests of leaderboards share.
import Hiredis
import RedisDCTesting
import TestSupport

@testable import GameServices

/// Runs a private server with a leaderboard on it.
func withBoard<Result>(
    configure: (inout LeaderboardConfiguration) -> Void = { _ in },
    _ body: (Leaderboard, RedisClient, LocalRedis) async throws -> Result
) async throws -> Result {
    var configuration = LeaderboardConfiguration()
    configuration.callTimeout = patience
    configure(&configuration)
    return try await withLocalRedis { server in
        try await withRedisClient(url: server.url) { redis in
            let moving = MovingSlotRedis(redis)
            return try await body(try Leaderboard("maze", redis: moving, configuration: configuration), redis, server)
        }
    }
}

extension LeaderboardPage {
    /// Rank, name and score of each entry.
    var text: String { entries.map { "\($0.rank) \($0.name) \($0.score)" }.joined(separator: ", ") }
}
