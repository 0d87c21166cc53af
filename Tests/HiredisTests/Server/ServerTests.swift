// Tests with their own redis-server. Those of a suite run one after the other, because each may stall, kill or overload its
// server.
import Hiredis
import RedisDCTesting
import NIOConcurrencyHelpers
import Testing

@Suite("The client with a real server")
enum ServerTests {}

/// The timeout for events that must happen. All suites run concurrently, and on a small machine an event can take
/// longer than a client's default timeout of 10 s.
let patience = Duration.seconds(120)

/// Runs a body with a client that has a long timeout; replaces the library's function.
func withRedisClient<Result>(url: String, _ body: (RedisClient) async throws -> Result) async throws -> Result {
    var configuration = try RedisConfiguration(url: url)
    configuration.commandTimeout = patience
    return try await withRedisClient(configuration, body)
}

/// Runs a body with a private server and a client of it.
func withServer<Result>(
    _ server: LocalRedis.Configuration = .init(),
    configure: (inout RedisConfiguration) -> Void = { _ in },
    _ body: (LocalRedis, RedisClient) async throws -> Result
) async throws -> Result {
    try await withLocalRedis(server) { server in
        var configuration = try RedisConfiguration(url: server.url)
        configuration.commandTimeout = patience
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
            configuration.commandTimeout = patience
            configure(&configuration)
            return try await withRedisClient(configuration) { redis in try await body(proxy, redis, direct) }
        }
    }
}

/// Waits until a condition holds. The timeout only ends a test that has failed.
func until(
    _ what: String, within bound: Duration = patience, _ condition: () async throws -> Bool
) async throws {
    let end = ContinuousClock.now + bound
    while !(try await condition()) {
        guard ContinuousClock.now < end else {
            Issue.record("timed out after \(bound): \(what)")
            throw NeverHappened(what: what)
        }
        try await Task.sleep(for: .milliseconds(2))
    }
}

struct NeverHappened: Error {
    var what: String
}

/// Returns the `RedisError` that a body throws, or nil.
func redisError(_ body: () async throws -> Void) async -> RedisError? {
    do {
        try await body()
        return nil
    } catch { return error as? RedisError }
}

extension RedisClient {
    /// Returns a field of INFO.
    func info(_ field: String) async throws -> String? {
        let text = try await send("INFO", "everything").string ?? ""
        let line = text.split(whereSeparator: \.isNewline).first { $0.hasPrefix(field + ":") }
        return line.map { String($0.dropFirst(field.count + 1)) }
    }

    func integer(_ command: RedisArgument...) async throws -> Int {
        try await send(RedisCommand(command)).integer ?? -1
    }

    /// Returns the number of clients that are blocked in a blocking command.
    func blockedClients() async throws -> Int { Int(try await info("blocked_clients") ?? "") ?? -1 }
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
