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
    let before = try await redis.callCounts()
    try await body()
    var difference = try await redis.callCounts().merging(before) { $0 - $1 }
    let scripts = difference["evalsha", default: 0] + difference["eval", default: 0]
    for name in ["info", "eval", "evalsha", "evalsha failed"] { difference[name] = nil }
    return (difference.filter { $0.value != 0 }, scripts)
}
