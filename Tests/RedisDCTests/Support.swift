// A private server with two clients.
import Hiredis
import RedisDC
import RedisDCTesting
import TestSupport
import Testing

@Suite("Classic semaphore", .serialized)
enum ClassicSemaphoreTests {}

/// How long what must come may take. All suites run at once, and on a small machine a test may be kept waiting for
/// longer than a client's default deadline of 10 s.
let patience = Duration.seconds(120)

/// A client with patience, in place of the library's function.
func withRedisClient<Result>(url: String, _ body: (RedisClient) async throws -> Result) async throws -> Result {
    var configuration = try RedisConfiguration(url: url)
    configuration.commandTimeout = patience
    return try await withRedisClient(configuration, body)
}

/// A private server, a client, and a second one that looks on.
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
