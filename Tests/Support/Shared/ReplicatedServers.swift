import Hiredis
public import RedisDCTesting
import Synchronization
import TestRandom

/// A server and its replica, behind a proxy that leads to the server until the promotion.
public final class ReplicatedServers: Sendable {
    public let proxy: FaultProxy
    private let roles: Mutex<(server: LocalRedis, replica: LocalRedis)>

    fileprivate init(server: LocalRedis, replica: LocalRedis, proxy: FaultProxy) {
        self.proxy = proxy
        roles = Mutex((server, replica))
    }

    public var server: LocalRedis { roles.withLock { $0.server } }
    public var replica: LocalRedis { roles.withLock { $0.replica } }

    public var url: String { "redis://127.0.0.1:\(proxy.port)" }

    /// Waits until the replica has everything, and ends the replication: what the server writes from
    /// now on is lost.
    public func cutReplication() async throws {
        try await withRedisClient(url: server.url) { redis in
            // WAIT is about the writes of its connection, and so about all that came before them. A published message
            // is replicated like a write, and leaves no key.
            try await until("the replica has everything") {
                try await redis.pipeline([["PUBLISH", "nobody", ""], ["WAIT", 1, 1000]]).last?.integer == 1
            }
        }
        try await withRedisClient(url: replica.url) { _ = try await $0.send("REPLICAOF", "NO", "ONE") }
    }

    /// Leads everybody to the replica.
    public func promote() async {
        tally(.fault)
        await proxy.redirect(to: .port(replica.port))
        await proxy.cutAll(.reset)
    }

    /// After a promotion, lets the old server follow the new one, which is ``server`` from now on.
    public func rejoin() async throws {
        roles.withLock { $0 = ($0.replica, $0.server) }
        let port = RedisArgument.integer(server.port)
        try await withRedisClient(url: replica.url) { _ = try await $0.send("REPLICAOF", "127.0.0.1", port) }
        try await untilFollowed()
    }

    fileprivate func untilFollowed() async throws {
        try await withRedisClient(url: server.url) { redis in
            try await until("the replica is connected") {
                try await redis.send("INFO", "replication").string?.contains("state=online") == true
            }
        }
    }
}

/// Runs `body` with a server and a replica that follows it.
public func withReplicatedServers<Result>(
    _ body: (ReplicatedServers) async throws -> Result
) async throws -> Result {
    let immediately = "repl-diskless-sync-delay 0"
    return try await withLocalRedis(.init(extra: [immediately])) { server in
        let following = LocalRedis.Configuration(
            extra: [immediately, "replicaof 127.0.0.1 \(server.port)"], waitUntilLoaded: false)
        return try await withLocalRedis(following) { replica in
            try await withFaultProxy(to: .port(server.port)) { proxy in
                let servers = ReplicatedServers(server: server, replica: replica, proxy: proxy)
                try await servers.untilFollowed()
                return try await body(servers)
            }
        }
    }
}
