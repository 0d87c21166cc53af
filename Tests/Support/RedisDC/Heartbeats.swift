// Waits for heartbeats that have arrived at Redis, so that tests need not sleep.
import Hiredis
import TestSupport

/// Waits until every session has sent `count` heartbeats or has ended.
///
/// - Parameter dead: A session that sends no heartbeats.
func untilHeartbeats(_ count: Int, _ redis: RedisClient, besides dead: String? = nil) async throws {
    for _ in 0..<count {
        let before = try await sessionEnds(redis)
        try await until("every session has sent a heartbeat") {
            let now = try await sessionEnds(redis)
            return before.allSatisfy { $0.key == dead || now[$0.key] != $0.value }
        }
    }
}

private func sessionEnds(_ redis: RedisClient) async throws -> [String: String] {
    let reply = try await redis.send("ZRANGE", "rdc:{default:0}:sessions", 0, -1, "WITHSCORES")
    let cells = reply.array?.compactMap(\.string) ?? []
    return Dictionary(
        uniqueKeysWithValues: stride(from: 0, to: cells.count - 1, by: 2).map { (cells[$0], cells[$0 + 1]) })
}
