import Hiredis
import RedisDC

/// Runs a body with a client and a coordinator in their default configuration. `CLIENT LIST` shows the connections under
/// the name of the namespace.
func withBenchCoordinator<Result>(
    url: String, namespace: String, configuration: CoordinatorConfiguration = .init(),
    commandTimeout: Duration = .seconds(10), _ body: (RedisClient, Coordinator) async throws -> Result
) async throws -> Result {
    var client = try RedisConfiguration(url: url)
    client.clientName = namespace
    client.commandTimeout = commandTimeout
    return try await withRedisClient(client) { redis in
        try await withCoordinator(redis: redis, namespace: namespace, configuration: configuration) { coordinator in
            try await body(redis, coordinator)
        }
    }
}

extension CoordinatorConfiguration {
    static func bench(partitions: Int) -> CoordinatorConfiguration {
        var configuration = CoordinatorConfiguration()
        configuration.partitions = partitions
        return configuration
    }
}
