import Hiredis
import RedisDC
import RedisDCTesting
import TestSupport
import Testing

/// A private server and a coordinator with a short TTL, for tests that kill other processes.
func withNodes<Result>(
    _ body: (_ node: Coordinator, _ server: LocalRedis, _ redis: RedisClient) async throws -> Result
) async throws -> Result {
    var configuration = CoordinatorConfiguration()
    configuration.callTimeout = patience
    configuration.ttl = .seconds(3)
    return try await withServer { server, redis, other in
        try await withCoordinator(redis: redis, configuration: configuration) { node in
            try await body(node, server, other)
        }
    }
}

/// Names in the order in which they were added.
actor Names {
    private(set) var all: [String] = []
    func add(_ name: String) { all.append(name) }
}
