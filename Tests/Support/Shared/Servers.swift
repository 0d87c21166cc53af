// Private servers and their clients.
public import Hiredis
public import RedisDCTesting

/// The timeout for events that must happen.
///
/// All suites of a target run concurrently, and on a small machine an event can take longer than a
/// client's default timeout of 10 s.
public let patience = Duration.seconds(120)

extension RedisConfiguration {
    /// Lets a client wait for a busy machine, also where it would take a slow server for a dead one.
    public mutating func bePatient() {
        (commandTimeout, silenceLimit) = (patience, patience)
        (connectTimeout, probeInterval) = (.seconds(30), .seconds(30))
    }
}

/// Runs `body` with a client that waits for a busy machine.
public func withTestClient<Result>(
    url: String, configure: (inout RedisConfiguration) -> Void = { _ in }, _ body: (RedisClient) async throws -> Result
) async throws -> Result {
    var configuration = try RedisConfiguration(url: url)
    configuration.bePatient()
    configure(&configuration)
    return try await withRedisClient(configuration, body)
}

/// Runs `body` with a private server, a client, and a second client that observes.
public func withServer<Result>(
    _ server: LocalRedis.Configuration = .init(),
    configure: (inout RedisConfiguration) -> Void = { _ in },
    _ body: (LocalRedis, _ redis: RedisClient, _ other: RedisClient) async throws -> Result
) async throws -> Result {
    try await withLocalRedis(server) { server in
        var configuration = try RedisConfiguration(url: server.url)
        configuration.bePatient()
        configure(&configuration)
        return try await withRedisClient(configuration) { redis in
            try await withTestClient(url: server.unixURL) { other in try await body(server, redis, other) }
        }
    }
}

extension RedisClient {
    /// Returns a field of INFO.
    public func info(_ field: String) async throws -> String? {
        let text = try await send("INFO", "everything").string ?? ""
        let line = text.split(whereSeparator: \.isNewline).first { $0.hasPrefix(field + ":") }
        return line.map { String($0.dropFirst(field.count + 1)) }
    }

    /// Returns the number of clients that are blocked in a blocking command.
    public func blockedClients() async throws -> Int { Int(try await info("blocked_clients") ?? "") ?? -1 }
}
