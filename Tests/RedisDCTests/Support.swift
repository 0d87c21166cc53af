// A private server with two clients.
import Foundation
import Hiredis
import RedisDC
import RedisDCTesting
import TestSupport
import Testing

@Suite("Classic semaphore", .serialized)
enum ClassicSemaphoreTests {}

/// The time limit of commands in tests.
///
/// All suites run at once, and on a small machine a command may take longer than a client's default
/// limit of 10 s.
let patience = Duration.seconds(120)

/// Runs `body` with a client that has this time limit. Replaces the library's function of the same
/// name.
func withRedisClient<Result>(url: String, _ body: (RedisClient) async throws -> Result) async throws -> Result {
    var configuration = try RedisConfiguration(url: url)
    configuration.commandTimeout = patience
    return try await withRedisClient(configuration, body)
}

/// Runs `body` with a private server, a client and a second client that observes.
func withServer<Result>(
    _ server: LocalRedis.Configuration = .init(),
    configure: (inout RedisConfiguration) -> Void = { _ in },
    _ body: (LocalRedis, _ redis: RedisClient, _ other: RedisClient) async throws -> Result
) async throws -> Result {
    try await withLocalRedis(server) { server in
        var configuration = try RedisConfiguration(url: server.url)
        configuration.commandTimeout = patience
        configure(&configuration)
        return try await withRedisClient(configuration) { redis in
            try await withRedisClient(url: server.unixURL) { other in try await body(server, redis, other) }
        }
    }
}

/// Returns the error that `body` throws, or `nil`.
func errorOf(_ body: () async throws -> Void) async -> RedisDCError? {
    do {
        try await body()
        return nil
    } catch { return error as? RedisDCError }
}

extension RedisClient {
    func blockedClients() async throws -> Int {
        let text = try await send("INFO", "clients").string ?? ""
        let line = text.split(whereSeparator: \.isNewline).first { $0.hasPrefix("blocked_clients:") }
        return line.flatMap { Int($0.dropFirst("blocked_clients:".count)) } ?? -1
    }
}
