import Hiredis

extension LocalRedis {
    /// Sends a command on a connection of its own, and returns its reply.
    ///
    /// - Throws: `RedisError` if the server does not reply within ten seconds or replies with an error.
    func send(_ arguments: RedisArgument...) async throws -> RESPValue {
        try await self.send(RedisCommand(arguments))
    }

    /// Sends a command on a connection of its own, and returns its reply.
    ///
    /// - Parameter timeout: the maximum time for the connection and for the reply, each.
    /// - Throws: `RedisError` if the server does not reply in time or replies with an error.
    func send(_ command: RedisCommand, timeout: Duration = .seconds(10)) async throws -> RESPValue {
        var configuration = RedisConfiguration(
            endpoint: .tcp(host: "127.0.0.1", port: self.port),
            credentials: self.configuration.password.map { .init(password: $0) })
        configuration.connectTimeout = timeout
        configuration.commandTimeout = timeout
        return try await withRedisClient(configuration) { try await $0.send(command) }
    }

    /// Whether the server runs and is not paused.
    var isResponsive: Bool {
        guard let processID = self.processID else { return false }
        return !ProcessState.isStopped(processID)
    }
}

/// Starts servers at the same time.
///
/// - Returns: the running servers in the order of their configurations, or nil if one of the ports is in use.
/// - Throws: the error of the first server that cannot be started. No server is running then.
func startServers(_ servers: [(configuration: LocalRedis.Configuration, port: Int)]) async throws -> [LocalRedis]? {
    typealias Start = (index: Int, result: Result<LocalRedis?, any Error>)
    // All ports first: a replica or a sentinel must not connect to another server, whose port its master was meant to have.
    let reservations = servers.compactMap { PortReservation([$0.port]) }
    guard reservations.count == servers.count else { return nil }
    let results = await withTaskGroup(of: Start.self) { group in
        for (index, server) in servers.enumerated() {
            group.addTask {
                do {
                    let started = try await LocalRedis.start(
                        server.configuration, port: server.port, reservations[index])
                    return (index, .success(started))
                } catch {
                    return (index, .failure(error))
                }
            }
        }
        return await group.reduce(into: [Start]()) { $0.append($1) }.sorted { $0.index < $1.index }
    }
    let started = results.compactMap { try? $0.result.get() }
    if started.count == servers.count { return started }
    await stopServers(started)
    for start in results { _ = try start.result.get() }
    return nil
}

/// Stops servers at the same time.
func stopServers(_ servers: [LocalRedis]) async {
    await withTaskGroup(of: Void.self) { group in
        for server in servers { group.addTask { await server.stop() } }
    }
}

/// Waits until a condition about several servers holds.
///
/// - Parameters:
///   - what: the condition in words, for the error.
///   - condition: the condition, checked every 20 ms. An error that it throws counts as false.
/// - Throws: ``LocalRedisError`` with the code ``LocalRedisError/Code/timedOut``;
///   `CancellationError` if the task is cancelled.
func waitUntil(_ what: String, within timeout: Duration, _ condition: () async throws -> Bool) async throws {
    let clock = ContinuousClock()
    let deadline = clock.now + timeout
    var lastError: (any Error)?
    while true {
        do {
            if try await condition() { return }
            lastError = nil
        } catch {
            lastError = error
        }
        try Task.checkCancellation()
        if clock.now >= deadline {
            let reason = lastError.map { "; the last error was: \($0)" } ?? ""
            throw LocalRedisError(.timedOut, "timed out after \(timeout): \(what)\(reason)")
        }
        try await Task.sleep(for: .milliseconds(20))
    }
}
