// Private servers and their clients.
import Hiredis
import NIOConcurrencyHelpers
import RedisDCTesting
import TestSupport
import Testing

/// Runs a body with a private server and a client of it.
func withServer<Result>(
    _ server: LocalRedis.Configuration = .init(),
    configure: (inout RedisConfiguration) -> Void = { _ in },
    _ body: (LocalRedis, RedisClient) async throws -> Result
) async throws -> Result {
    try await withLocalRedis(server) { server in
        var configuration = try RedisConfiguration(url: server.url)
        configuration.bePatient()
        configure(&configuration)
        return try await withRedisClient(configuration) { redis in try await body(server, redis) }
    }
}

/// Runs a body with a private server, a proxy, a client that connects through the proxy, and a `direct` client.
func withProxiedServer<Result>(
    configure: (inout RedisConfiguration) -> Void = { _ in },
    _ body: (FaultProxy, _ redis: RedisClient, _ direct: RedisClient) async throws -> Result
) async throws -> Result {
    try await withServer { server, direct in
        try await withFaultProxy(to: .port(server.port)) { proxy in
            var configuration = RedisConfiguration(endpoint: .tcp(host: "127.0.0.1", port: proxy.port))
            configuration.bePatient()
            configure(&configuration)
            return try await withRedisClient(configuration) { redis in try await body(proxy, redis, direct) }
        }
    }
}

/// Returns the `RedisError` that a body throws, or nil.
func redisError(_ body: () async throws -> Void) async -> RedisError? {
    do {
        try await body()
        return nil
    } catch { return error as? RedisError }
}

extension RedisClient {
    func integer(_ command: RedisArgument...) async throws -> Int {
        try await send(RedisCommand(command)).integer ?? -1
    }
}

/// A record of the values that tasks and callbacks have seen.
final class Record<Element: Sendable>: Sendable {
    private let elements = NIOLockedValueBox<[Element]>([])

    func add(_ element: Element) { elements.withLockedValue { $0.append(element) } }
    var all: [Element] { elements.withLockedValue { $0 } }
    var count: Int { elements.withLockedValue { $0.count } }
}

func expectPong(_ redis: RedisClient) async throws {
    let reply = try await redis.send("PING")
    #expect(reply == .status("PONG"))
}
