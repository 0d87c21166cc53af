import Hiredis
import RedisDC

/// A client and a coordinator as every program has them. The namespace is also what `CLIENT LIST` calls the connections.
func withBenchCoordinator<Result>(
    url: String, namespace: String, configuration: CoordinatorConfiguration = .init(),
    _ body: (RedisClient, Coordinator) async throws -> Result
) async throws -> Result {
    var client = try RedisConfiguration(url: url)
    client.clientName = namespace
    return try await withRedisClient(client) { redis in
        try await withCoordinator(redis: redis, namespace: namespace, configuration: configuration) { coordinator in
            try await body(redis, coordinator)
        }
    }
}
