import Foundation
import Hiredis

/// A run of several nodes: its name, the number of rounds, and a log in Redis.
struct Run {
    var name: String
    var rounds: Int

    /// Appends an entry with the time of the server. Redis runs one script at a time, so the order
    /// of the list is the order of the events, regardless of the clocks of the machines.
    private static let append = RedisScript(
        """
        -- KEYS[1] log   ARGV[1] event   ARGV[2] round
        local now = redis.call('TIME')
        local stamp = string.format('%d', now[1] * 1000000 + now[2])
        redis.call('EXPIRE', KEYS[1], 3600)
        return redis.call('RPUSH', KEYS[1], ARGV[1] .. ' ' .. ARGV[2] .. ' ' .. stamp)
        """)

    /// Writes an entry and returns when it is in the log.
    func log(_ event: String, _ round: Int, _ redis: RedisClient) async throws {
        _ = try await redis.script(
            Self.append, keys: ["rdc:demo:\(name):log"], arguments: [.string(event), .integer(round)])
    }
}
