/// The way in which a client finds the servers that it talks to.
///
/// ```swift
/// let url = "redis-sentinel://:secret@10.0.0.1:26379,10.0.0.2:26379,10.0.0.3:26379/orders"
/// try await withRedisClient(url: url) { redis in … }
/// ```
///
/// All topologies have the same operations and the same guarantees: a command that a server may have
/// received is not sent again.
public enum RedisTopology: Sendable, Hashable {
    /// One server, at ``RedisConfiguration/endpoint``.
    case single
    /// The master that a majority of these sentinels names.
    ///
    /// - `name`: the name under which the sentinels know the master.
    /// - `addresses`: all sentinels. The majority is counted over them.
    case sentinel(name: String, addresses: [RedisConfiguration.Endpoint])
    /// The masters of a cluster, by the slots of the keys.
    ///
    /// - `seeds`: servers of the cluster, of which one must be reachable when the client starts.
    case cluster(seeds: [RedisConfiguration.Endpoint])
}
