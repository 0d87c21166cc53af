import NIOCore

/// The servers of a client, by its topology.
enum Servers: Sendable {
    /// One server, or the master that sentinels name.
    case one(Node, SentinelMonitor?)
    case cluster(Cluster)

    init(_ configuration: RedisConfiguration, eventLoop: any EventLoop) throws(RedisError) {
        switch configuration.topology {
        case .single:
            self = .one(try Node(configuration, eventLoop: eventLoop), nil)
        case .sentinel(let name, let addresses):
            let monitor = try SentinelMonitor(
                name: name, addresses: addresses, configuration, eventLoop: eventLoop,
                instruments: Instruments(configuration))
            self = .one(try Node(configuration, eventLoop: eventLoop, source: monitor), monitor)
        case .cluster(let seeds):
            self = .cluster(try Cluster(seeds: seeds, configuration, eventLoop: eventLoop))
        }
    }

    /// The functions that keep the connections, each until its task is cancelled.
    var tasks: [@Sendable () async -> Void] {
        switch self {
        case .one(let node, let sentinels): node.tasks + (sentinels.map { [$0.run] } ?? [])
        case .cluster(let cluster): [cluster.run]
        }
    }

    /// Refuses new commands, and returns when those in flight have their replies.
    func drain() async {
        switch self {
        case .one(let node, _): await node.drain()
        case .cluster(let cluster): await cluster.drain()
        }
    }

    /// Fails everything in flight, and closes the connections.
    func stop() async {
        switch self {
        case .one(let node, _): await node.stop()
        case .cluster(let cluster): await cluster.stop()
        }
    }
}
