import Hiredis
public import RedisDCTesting

/// A server and its replica, behind a proxy that leads to the server until the promotion.
public struct ReplicatedServers: Sendable {
    public let server: LocalRedis
    public let replica: LocalRedis
    public let proxy: FaultProxy

    public var url: String { "redis://127.0.0.1:\(proxy.port)" }

    /// Waits until the replica has everything, and ends the replication: what the server writes from
    /// now on is lost.
    public func cutReplication() async throws {
        try await withRedisClient(url: server.url) { redis in
            try await until("the replica has everything") { try await redis.send("WAIT", 1, 1000).integer == 1 }
        }
        try await withRedisClient(url: replica.url) { _ = try await $0.send("REPLICAOF", "NO", "ONE") }
    }

    /// Leads everybody to the replica.
    public func promote() async {
        await proxy.redirect(to: .port(replica.port))
        await proxy.cutAll(.reset)
    }
}

/// Runs `body` with a server and a replica that follows it.
public func withReplicatedServers<Result>(
    _ body: (ReplicatedServers) async throws -> Result
) async throws -> Result {
    try await withLocalRedis(.init(extra: ["repl-diskless-sync-delay 0"])) { server in
        let following = LocalRedis.Configuration(
            extra: ["replicaof 127.0.0.1 \(server.port)"], waitUntilLoaded: false)
        return try await withLocalRedis(following) { replica in
            try await withFaultProxy(to: .port(server.port)) { proxy in
                try await withRedisClient(url: server.url) { redis in
                    try await until("the replica is connected") {
                        try await redis.send("INFO", "replication").string?.contains("state=online") == true
                    }
                }
                return try await body(ReplicatedServers(server: server, replica: replica, proxy: proxy))
            }
        }
    }
}
