// Tests against a real redis-server of their own, one after the other: each may stall, kill or starve its server.
import Hiredis
import RedisDCTesting
import NIOConcurrencyHelpers
import Testing

@Suite("With a real server", .serialized)
enum ServerTests {}

/// How long what must come may take. All suites run at once, and on a small machine a test may be kept waiting for
/// longer than a client's default deadline of 10 s.
let patience = Duration.seconds(120)

/// A client with patience, in place of the library's function.
func withRedisClient<Result>(url: String, _ body: (RedisClient) async throws -> Result) async throws -> Result {
    var configuration = try RedisConfiguration(url: url)
    configuration.commandTimeout = patience
    return try await withRedisClient(configuration, body)
}

/// A private server and a client of it.
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

/// A private server, a proxy before it, and a client that goes through the proxy. The `direct` client does not.
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

/// Waits until a condition holds. The bound only ends a test that has failed.
func until(
    _ what: String, within bound: Duration = patience, _ condition: () async throws -> Bool
) async throws {
    let end = ContinuousClock.now + bound
    while !(try await condition()) {
        guard ContinuousClock.now < end else {
            Issue.record("never: \(what)")
            throw NeverHappened(what: what)
        }
        try await Task.sleep(for: .milliseconds(2))
    }
}

struct NeverHappened: Error {
    var what: String
}

/// The error that `body` throws, if it is one of Redis.
func redisError(_ body: () async throws -> Void) async -> RedisError? {
    do {
        try await body()
        return nil
    } catch { return error as? RedisError }
}

extension RedisClient {
    /// A field of INFO.
    func info(_ field: String) async throws -> String? {
        let text = try await send("INFO", "everything").string ?? ""
        let line = text.split(whereSeparator: \.isNewline).first { $0.hasPrefix(field + ":") }
        return line.map { String($0.dropFirst(field.count + 1)) }
    }

    func integer(_ command: RedisArgument...) async throws -> Int {
        try await send(RedisCommand(command)).integer ?? -1
    }

    /// How many clients are blocked in a blocking command now.
    func blockedClients() async throws -> Int { Int(try await info("blocked_clients") ?? "") ?? -1 }
}

/// What tasks and callbacks have seen.
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
