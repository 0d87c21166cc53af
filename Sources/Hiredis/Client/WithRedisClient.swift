// A client for the duration of a body.

/// Makes a client, runs it while `body` runs, and closes it. For scripts, tools and tests.
///
/// When the task is cancelled, the client continues until `body` has ended, so that an element that
/// a cancelled wait took can still be given back.
///
/// - Throws: ``RedisError`` with `.invalidArgument` for a configuration out of range or TLS files
///   that cannot be read; and what `body` throws.
@discardableResult
public func withRedisClient<Result>(
    _ configuration: RedisConfiguration,
    _ body: (RedisClient) async throws -> Result
) async throws -> Result {
    let client = try RedisClient(configuration)
    return try await whileRunning({ await client.run() }, { try await body(client) })
}

/// Makes a client of the server at a URL, runs it while `body` runs, and closes it.
///
/// - Parameter url: see ``RedisConfiguration/init(url:)``.
/// - Throws: ``RedisError`` with `.invalidArgument` for a URL that cannot be used; and what `body`
///   throws.
@discardableResult
public func withRedisClient<Result>(
    url: String, _ body: (RedisClient) async throws -> Result
) async throws -> Result {
    try await withRedisClient(RedisConfiguration(url: url), body)
}
