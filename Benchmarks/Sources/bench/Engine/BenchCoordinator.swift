import Hiredis
import RedisDC

/// A client and a coordinator as every program has them. The namespace is also what `CLIENT LIST` calls the connections.
func withBenchCoordinator<Result>(
    url: String, namespace: String, _ body: (RedisClient, Coordinator) async throws -> Result
) async throws -> Result {
    var configuration = try RedisConfiguration(url: url)
    configuration.clientName = namespace
    return try await withRedisClient(configuration) { redis in
        try await withCoordinator(redis: redis, namespace: namespace) { coordinator in
            try await body(redis, coordinator)
        }
    }
}
