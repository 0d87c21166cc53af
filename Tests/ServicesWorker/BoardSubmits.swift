import GameServices
import Hiredis

/// A process that submits to a leaderboard until it is killed.
struct BoardSubmits {
    let redis: RedisClient
    /// The player's name, and the list to which each submit is appended before it is sent.
    let name: String

    func run() async throws {
        var configuration = LeaderboardConfiguration()
        configuration.mode = .sum
        let board = try Leaderboard("maze", redis: redis, configuration: configuration)
        var number = 1
        while true {
            _ = try await redis.send("RPUSH", .string(name), .integer(number))
            try await board.submit(1, for: name, id: "\(name)-\(number)")
            number += 1
        }
    }
}
