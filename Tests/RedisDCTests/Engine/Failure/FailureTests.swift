// A short TTL and a coordinator behind a proxy, for all tests of failures.
import Hiredis
import RedisDC
import RedisDCTesting
import Testing

extension EngineTests {
    @Suite("Failures")
    struct FailureTests {}
}

/// A TTL that is short enough for sessions to expire during a test.
let shortTTL: CoordinatorConfiguration = {
    var configuration = CoordinatorConfiguration()
    configuration.ttl = .seconds(2)
    return configuration
}()

/// Runs `body` with a server, a coordinator behind a proxy, another one without, and a client that
/// observes.
func withProxiedCoordinator<Result>(
    configuration: CoordinatorConfiguration = .init(),
    _ body: (FaultProxy, _ proxied: Coordinator, _ other: Coordinator, _ redis: RedisClient) async throws -> Result
) async throws -> Result {
    try await withServer { server, _, redis in
        try await withFaultProxy(to: .port(server.port)) { proxy in
            try await withRedisClient(url: "redis://127.0.0.1:\(proxy.port)") { client in
                try await withCoordinator(redis: client, configuration: configuration) { proxied in
                    try await withCoordinator(redis: redis, configuration: configuration) { other in
                        try await body(proxy, proxied, other, redis)
                    }
                }
            }
        }
    }
}
