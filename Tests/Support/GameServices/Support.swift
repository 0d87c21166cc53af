// Helpers that the tests of the services share.
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import GameServices

/// Returns the error that `body` throws, if it is a `GameServiceError`.
func errorOf(_ body: () async throws -> Void) async -> GameServiceError? {
    do {
        try await body()
        return nil
    } catch { return error as? GameServiceError }
}

/// Returns how many commands the server has executed during `body`, by name, and how many scripts.
///
/// The commands include those of scripts. Heartbeats that come in between are counted too.
func cost(
    _ redis: RedisClient, _ body: () async throws -> Void
) async throws -> (commands: [String: Int], scripts: Int) {
    let before = try await commandCounts(redis)
    try await body()
    var difference = try await commandCounts(redis).merging(before) { $0 - $1 }
    let scripts = difference["evalsha", default: 0] + difference["eval", default: 0]
    for name in ["info", "eval", "evalsha"] { difference[name] = nil }
    return (difference.filter { $0.value != 0 }, scripts)
}

private func commandCounts(_ redis: RedisClient) async throws -> [String: Int] {
    let stats = try await redis.send("INFO", "commandstats").string ?? ""
    var counts: [String: Int] = [:]
    for line in stats.split(whereSeparator: \.isNewline) where line.hasPrefix("cmdstat_") {
        let parts = line.dropFirst(8).split(separator: ":calls=")
        counts[String(parts[0])] = parts[1].split(separator: ",").first.flatMap { Int($0) }
    }
    return counts
}
