extension LocalCluster {
    /// The configuration of a ``LocalCluster``.
    public struct Configuration: Sendable {
        /// The configuration of each node; the default of ``LocalRedis`` by default.
        ///
        /// The nodes log in to each other with its password. With certificates, they have TLS ports as
        /// well; the nodes name the other ports, so that a client that uses TLS must translate them.
        public var server: LocalRedis.Configuration
        /// The number of masters, at least 1; 3 by default.
        ///
        /// With fewer than 3, no replica is promoted when a master fails, because the remaining
        /// masters are no majority.
        public var masters: Int
        /// The number of replicas of each master; 1 by default.
        public var replicasPerMaster: Int
        /// The time after which the nodes consider one that does not reply as down
        /// (`cluster-node-timeout`), at least 500 ms; two seconds by default.
        ///
        /// A replica is promoted after that time and up to two further seconds. A short time makes
        /// a master that is only slow lose its role.
        public var nodeTimeout: Duration
        /// Whether a master can be separated from the others: see ``LocalCluster/separate(_:)``; false
        /// by default.
        ///
        /// If true, each node announces the ports of two proxies, through which the other nodes and
        /// the clients of the cluster connect to it. The nodes' own ports remain.
        public var isSplittable: Bool

        /// Creates a configuration.
        ///
        /// - Parameters:
        ///   - server: the configuration of each node.
        ///   - masters: the number of masters, at least 1.
        ///   - replicasPerMaster: the number of replicas of each master.
        ///   - nodeTimeout: the time after which a node that does not reply counts as down.
        ///   - isSplittable: whether a master can be separated from the others.
        public init(
            server: LocalRedis.Configuration = LocalRedis.Configuration(),
            masters: Int = 3,
            replicasPerMaster: Int = 1,
            nodeTimeout: Duration = .seconds(2),
            isSplittable: Bool = false
        ) {
            self.server = server
            self.masters = masters
            self.replicasPerMaster = replicasPerMaster
            self.nodeTimeout = nodeTimeout
            self.isSplittable = isSplittable
        }
    }
}

/// The nodes of a new cluster, from which each node's `nodes.conf` is made.
///
/// With the file the nodes know each other, their roles and their slots when they start. Introducing
/// them with `CLUSTER MEET` takes several rounds of gossip.
struct ClusterPlan {
    let configuration: LocalCluster.Configuration
    /// The ports of the masters, followed by those of the replicas.
    let ports: [Int]
    /// The proxies of each node if the nodes can be separated, otherwise empty.
    let proxies: [LocalCluster.NodeProxies]
    private let ids: [String]
    /// The id of each master's shard, which Valkey 9 needs; nil if the server program does not know them.
    private let shardIDs: [String]?

    init(_ configuration: LocalCluster.Configuration, hasShardIDs: Bool) async throws {
        self.configuration = configuration
        self.shardIDs = hasShardIDs ? (0..<configuration.masters).map { _ in String.randomID() } : nil
        let count = configuration.masters * (1 + configuration.replicasPerMaster)
        self.ports = ServerEndpoints.distinct(count, in: ServerEndpoints.clusterPorts)
        let ids = self.ports.map { _ in String.randomID() }
        self.ids = ids
        var proxies: [LocalCluster.NodeProxies] = []
        if configuration.isSplittable {
            for (port, id) in zip(self.ports, ids) { proxies.append(try await .start(port: port, nodeID: id)) }
        }
        self.proxies = proxies
    }

    /// The ports at which other nodes and clients connect to a node: for commands, and for the bus.
    private func announcedPorts(_ index: Int) -> (data: Int, bus: Int) {
        guard !self.proxies.isEmpty else { return (self.ports[index], self.ports[index] + 10_000) }
        return (self.proxies[index].data.port, self.proxies[index].bus.port)
    }

    /// Returns the configuration of the node at a position.
    func node(_ index: Int) -> LocalRedis.Configuration {
        var node = self.configuration.server
        // A replica replies that it is loading until it has its master's data.
        node.waitUntilLoaded = node.waitUntilLoaded && index < self.configuration.masters
        node.files["nodes.conf"] = self.nodesFile(for: index)
        var lines = [
            "cluster-enabled yes",
            "cluster-config-file nodes.conf",
            "cluster-node-timeout \(max(500, Int(self.configuration.nodeTimeout / .milliseconds(1))))",
            // A replica may be promoted however long it has been without its master.
            "cluster-replica-validity-factor 0",
            "repl-diskless-sync-delay 0",
            "repl-ping-replica-period 1",
        ]
        if self.configuration.isSplittable {
            let announced = self.announcedPorts(index)
            lines += [
                "cluster-announce-ip 127.0.0.1", "cluster-announce-port \(announced.data)",
                "cluster-announce-bus-port \(announced.bus)",
            ]
        }
        if let password = node.password { lines.append("masterauth \(ServerConfigFile.quoted(password))") }
        node.extra = lines + node.extra
        return node
    }

    private func nodesFile(for index: Int) -> String {
        let masters = self.configuration.masters
        let lines = self.ports.indices.map { node in
            let (ports, master) = (self.announcedPorts(node), node % masters)
            let isMaster = node < masters
            let flags = (node == index ? "myself," : "") + (isMaster ? "master" : "slave")
            let slots = isMaster ? " \(node * 16384 / masters)-\((node + 1) * 16384 / masters - 1)" : ""
            let shard = self.shardIDs.map { ",,shard-id=\($0[master])" } ?? ""
            let address = "127.0.0.1:\(ports.data)@\(ports.bus)\(shard)"
            return "\(self.ids[node]) \(address) \(flags) \(isMaster ? "-" : self.ids[master]) "
                + "0 0 \(master + 1) connected\(slots)"
        }
        return (lines + ["vars currentEpoch \(masters) lastVoteEpoch 0"]).joined(separator: "\n") + "\n"
    }
}
