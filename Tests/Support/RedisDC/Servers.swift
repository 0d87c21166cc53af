// Private servers with two coordinators.
import Foundation
import Hiredis
import RedisDC
import RedisDCTesting
import TestSupport
import Testing

/// Runs `body` with a private server and two coordinators of one namespace, each with its own
/// connection.
func withCoordinators<Result>(
    _ server: LocalRedis.Configuration = .init(), configuration: CoordinatorConfiguration = longTTL,
    _ body: (LocalRedis, _ one: Coordinator, _ two: Coordinator, _ redis: RedisClient) async throws -> Result
) async throws -> Result {
    try await withServer(server) { server, redis, other in
        try await withCoordinator(redis: redis, configuration: configuration) { one in
            try await withCoordinator(redis: other, configuration: configuration) { two in
                // A coordinator replaces a connection that is silent for too long, and with it the replies to others.
                try await withTestClient(url: server.unixURL) { observer in
                    try await body(server, one, two, observer)
                }
            }
        }
    }
}

/// A TTL that is short enough for sessions to expire during a test.
let shortTTL: CoordinatorConfiguration = {
    var configuration = CoordinatorConfiguration()
    configuration.callTimeout = patience
    configuration.ttl = .seconds(2)
    return configuration
}()

/// A TTL for tests that wait for heartbeats, and in which no session is to expire.
let mediumTTL: CoordinatorConfiguration = {
    var configuration = longTTL
    configuration.ttl = .seconds(15)
    return configuration
}()

/// Runs `body` with a server, a coordinator behind a proxy, another one without, and a client that
/// observes.
func withProxiedCoordinator<Result>(
    configuration: CoordinatorConfiguration = longTTL, configure: (inout RedisConfiguration) -> Void = { _ in },
    _ body: (FaultProxy, _ proxied: Coordinator, _ other: Coordinator, _ redis: RedisClient) async throws -> Result
) async throws -> Result {
    try await withServer { server, redis, observer in
        try await withFaultProxy(to: .port(server.port)) { proxy in
            try await withTestClient(url: "redis://127.0.0.1:\(proxy.port)", configure: configure) { client in
                try await withCoordinator(redis: client, configuration: configuration) { proxied in
                    try await withCoordinator(redis: redis, configuration: configuration) { other in
                        try await body(proxy, proxied, other, observer)
                    }
                }
            }
        }
    }
}

/// A TTL within which also a machine on which many tests run at once sends a heartbeat: for tests in
/// which no session is to expire.
let longTTL: CoordinatorConfiguration = {
    var configuration = CoordinatorConfiguration()
    configuration.callTimeout = patience
    configuration.ttl = .seconds(60)
    return configuration
}()

/// Returns the error that `body` throws, or `nil`.
func errorOf(_ body: () async throws -> Void) async -> RedisDCError? {
    do {
        try await body()
        return nil
    } catch { return error as? RedisDCError }
}
