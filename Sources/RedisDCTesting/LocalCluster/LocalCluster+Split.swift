public import Hiredis

extension LocalCluster {
    /// Separates a master from all other nodes, as a network partition does.
    ///
    /// ```swift
    /// try await withLocalCluster(.init(isSplittable: true)) { cluster in
    ///     let old = try await cluster.master(ofKey: "account")
    ///     let replica = try await cluster.replicas(of: old)[0]
    ///     try await cluster.separate(old)
    ///     try await cluster.waitUntilPromoted(replica)
    ///     try await cluster.reunite(old)
    ///     try await cluster.waitUntilHealthy()      // the old master follows the new one
    /// }
    /// ```
    ///
    /// Connections between the two sides stay open, and carry nothing: neither the messages by which
    /// the nodes watch one another, nor what its replicas copy. After the node timeout
    /// (``Configuration/nodeTimeout``) the master refuses all commands with keys (`CLUSTERDOWN`), and
    /// one of its replicas is promoted.
    ///
    /// The side of the master consists of itself, the clients of its own port (``LocalRedis/url``) and
    /// those with the ``clientConfiguration(onSideOf:)``. Clients of ``LocalCluster/url`` are on the
    /// other side.
    ///
    /// - Parameter master: a master. The connection that a replica has opened to its master would not
    ///   be separated.
    /// - Throws: ``LocalRedisError`` with the code ``LocalRedisError/Code/notHealthy`` if the nodes are
    ///   not splittable: see ``Configuration/isSplittable``.
    public func separate(_ master: LocalRedis) async throws {
        let separated = try self.requiredProxies(of: master)
        await separated.data.stall()
        await separated.bus.stall()
        for proxies in self.proxies where proxies.nodeID != separated.nodeID {
            await proxies.bus.stallClients(separated.introduction)
            await proxies.farSide.stall()
        }
    }

    /// Ends the separation of a master. The connections that were separated break.
    ///
    /// - Throws: what ``separate(_:)`` throws.
    public func reunite(_ master: LocalRedis) async throws {
        let separated = try self.requiredProxies(of: master)
        for proxies in self.proxies where proxies.nodeID != separated.nodeID {
            await proxies.bus.unstallClients(separated.introduction)
            await proxies.farSide.reunite()
        }
        await separated.bus.reunite()
        await separated.data.reunite()
    }

    /// Returns the configuration of a client that is on the side of a master when that is separated,
    /// and that reaches all nodes at other times.
    ///
    /// - Throws: what ``separate(_:)`` throws.
    public func clientConfiguration(onSideOf master: LocalRedis) throws -> RedisConfiguration {
        let own = try self.requiredProxies(of: master)
        var configuration = try RedisConfiguration(
            url: "redis-cluster://\(master.userInfo)127.0.0.1:\(master.port)")
        for (node, proxies) in zip(self.nodes, self.proxies) {
            let port = proxies.nodeID == own.nodeID ? node.port : proxies.farSide.port
            configuration.addressMap[.tcp(host: "127.0.0.1", port: proxies.data.port)] =
                .tcp(host: "127.0.0.1", port: port)
        }
        return configuration
    }

    /// Waits until a replica has become a master.
    ///
    /// - Throws: ``LocalRedisError`` with the code ``LocalRedisError/Code/timedOut``.
    public func waitUntilPromoted(_ replica: LocalRedis, within timeout: Duration = .seconds(60)) async throws {
        try await waitUntil("the replica on port \(replica.port) is promoted", within: timeout) {
            let role = try await replica.send("ROLE").array ?? []
            if role.first?.string == "master" { return true }
            throw LocalRedisError(.notHealthy, "its role is \(role)")
        }
    }

    /// Returns the proxies of a node, or nil if the nodes cannot be separated.
    func proxies(of node: LocalRedis) -> NodeProxies? {
        zip(self.nodes, self.proxies).first { $0.0 === node }?.1
    }

    private func requiredProxies(of node: LocalRedis) throws -> NodeProxies {
        guard let proxies = self.proxies(of: node) else {
            throw LocalRedisError(
                .notHealthy, "cannot separate the node on port \(node.port): set isSplittable in the configuration")
        }
        return proxies
    }
}

extension LocalCluster {
    /// The two proxies of a node through which others connect to it.
    struct NodeProxies: Sendable {
        let nodeID: String
        /// For clients and replicas.
        let data: FaultProxy
        /// For the messages between nodes.
        let bus: FaultProxy
        /// For clients on the side of a separated master, which reach the others through it at other times.
        let farSide: FaultProxy

        static func start(port: Int, nodeID: String) async throws -> NodeProxies {
            NodeProxies(
                nodeID: nodeID, data: try await .start(to: .port(port)),
                bus: try await .start(to: .port(port + 10_000)), farSide: try await .start(to: .port(port)))
        }

        func stop() async {
            await self.data.stop()
            await self.bus.stop()
            await self.farSide.stop()
        }

        /// How the node is recognized when it connects to the others: the id of the sender follows 40 bytes of each
        /// message's header.
        var introduction: FaultProxy.Introduction { .init(offset: 40, bytes: Array(self.nodeID.utf8)) }
    }
}

extension FaultProxy {
    /// Ends a stall, and resets the connections: data that was sent meanwhile must not arrive, because a partition that
    /// lasts ends connections.
    func reunite() async {
        await self.cutAll(.reset)
        await self.unstall()
    }
}
