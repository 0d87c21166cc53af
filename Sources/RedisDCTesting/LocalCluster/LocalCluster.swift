import Hiredis

/// A Redis Cluster with masters and replicas, for one test.
///
/// ```swift
/// try await withLocalCluster { cluster in
///     let old = try await cluster.master(ofKey: "account")
///     await old.kill()                      // SIGKILL; its replica is promoted after some seconds
///     try await cluster.waitUntilHealthy()
///     let new = try await cluster.master(ofKey: "account")
///     #expect(new !== old)
/// }
/// ```
///
/// It is ready in about two seconds, and has the guarantees of ``LocalRedis``: all nodes listen on
/// loopback only, and end with the process that started them.
///
/// The nodes are ``LocalRedis`` objects, so each of them can be killed, paused, resumed and
/// restarted. A restarted node finds its place in the cluster by itself.
///
/// **Limits**
/// - A paused node stands for one behind a partition: its clients and the other nodes cannot reach
///   it, and when it is resumed it believes for a moment to have its old role.
///   For a master that clients on its side of a partition still reach, see ``separate(_:)``.
/// - The port of a node's cluster bus is its port plus 10,000.
public final class LocalCluster: Sendable {
    /// The masters at the start in the order of their slots, followed by the replicas, in the order
    /// of their masters. The roles change with each failover.
    public let nodes: [LocalRedis]
    /// The proxies of each node if the nodes can be separated, otherwise empty.
    let proxies: [NodeProxies]

    private init(nodes: [LocalRedis], proxies: [NodeProxies]) {
        self.nodes = nodes
        self.proxies = proxies
    }

    /// Starts the nodes, and returns when the cluster is healthy: see ``waitUntilHealthy(within:)``.
    ///
    /// Call ``stop()`` when the cluster is no longer needed, or use
    /// ``withLocalCluster(_:body:)``, which does. If the start fails or the task is cancelled, no
    /// process and no folder remain.
    ///
    /// - Throws: what ``LocalRedis/start(_:)`` and ``waitUntilHealthy(within:)`` throw.
    public static func start(_ configuration: Configuration = Configuration()) async throws -> LocalCluster {
        let hasShardIDs = try await ServerProgram.knowsShardIDs(configuration.server.binary)
        for _ in 1...20 {
            // Its proxies are stopped when they are released.
            let plan = try await ClusterPlan(configuration, hasShardIDs: hasShardIDs)
            let nodes = plan.ports.indices.map { (plan.node($0), plan.ports[$0]) }
            guard let started = try await startServers(nodes) else { continue }
            let cluster = LocalCluster(nodes: started, proxies: plan.proxies)
            do {
                try await cluster.waitUntilHealthy(within: configuration.server.startTimeout)
                return cluster
            } catch {
                await cluster.stop()
                throw error
            }
        }
        throw LocalRedisError.noFreePorts
    }

    /// Ends all nodes, and removes their folders: see ``LocalRedis/stop()``.
    public func stop() async {
        await stopServers(self.nodes)
        for proxies in self.proxies { await proxies.stop() }
    }

    /// The URL of the cluster, `redis-cluster://HOST:PORT,HOST:PORT`, with all nodes as seeds and
    /// the password if there is one.
    public var url: String {
        let addresses = self.nodes.map { "127.0.0.1:\(self.announcedPort(of: $0))" }.joined(separator: ",")
        return "redis-cluster://\(self.nodes[0].userInfo)\(addresses)"
    }

    // MARK: Roles

    /// Returns the masters that serve slots, in the order of their first slots.
    ///
    /// - Throws: ``LocalRedisError`` with the code ``LocalRedisError/Code/notHealthy`` if no node is
    ///   running; `RedisError` if one does not reply.
    public func masters() async throws -> [LocalRedis] {
        var masters: [LocalRedis] = []
        for range in try await self.slots(by: try self.anyNode()) {
            guard let node = self.node(announcing: range.port), !masters.contains(where: { $0 === node }) else {
                continue
            }
            masters.append(node)
        }
        return masters
    }

    /// Returns the nodes other than the masters, running or not.
    ///
    /// - Throws: what ``masters()`` throws.
    public func replicas() async throws -> [LocalRedis] {
        let masters = try await self.masters()
        return self.nodes.filter { node in !masters.contains { $0 === node } }
    }

    /// Returns the running nodes that replicate a master.
    ///
    /// - Throws: what ``masters()`` throws.
    public func replicas(of master: LocalRedis) async throws -> [LocalRedis] {
        var replicas: [LocalRedis] = []
        for node in self.nodes where node !== master && node.isResponsive {
            let role = try await node.send("ROLE").array ?? []
            if role.count == 5, role[2].integer == self.announcedPort(of: master) { replicas.append(node) }
        }
        return replicas
    }

    /// Returns the master that serves the slot of a key.
    ///
    /// - Throws: what ``masters()`` throws; ``LocalRedisError`` with the code
    ///   ``LocalRedisError/Code/notHealthy`` if no node serves the slot.
    public func master(ofKey key: String) async throws -> LocalRedis {
        let reply = try await self.anyNode().send("CLUSTER", "KEYSLOT", .string(key))
        return try await self.master(ofSlot: reply.integer ?? -1)
    }

    /// Returns the master that serves a slot.
    ///
    /// - Parameter slot: 0 to 16383.
    /// - Throws: what ``master(ofKey:)`` throws.
    public func master(ofSlot slot: Int) async throws -> LocalRedis {
        let range = try await self.slots(by: try self.anyNode()).first { $0.slots.contains(slot) }
        guard let range, let master = self.node(announcing: range.port) else {
            throw LocalRedisError(.notHealthy, "no node serves the slot \(slot)")
        }
        return master
    }

    /// The slots that a master serves, as a node knows it.
    struct ServedSlots: Hashable {
        var slots: ClosedRange<Int>
        var port: Int
    }

    func slots(by node: LocalRedis) async throws -> [ServedSlots] {
        let reply = try await node.send("CLUSTER", "SLOTS").array ?? []
        let ranges = reply.compactMap { entry -> ServedSlots? in
            guard let parts = entry.array, parts.count >= 3, let first = parts[0].integer, let last = parts[1].integer,
                let port = parts[2].array?[1].integer
            else { return nil }
            return ServedSlots(slots: first...last, port: port)
        }
        return ranges.sorted { $0.slots.lowerBound < $1.slots.lowerBound }
    }

    func anyNode() throws -> LocalRedis {
        guard let node = self.nodes.first(where: { $0.isResponsive }) else {
            throw LocalRedisError(.notHealthy, "no node of the cluster is running")
        }
        return node
    }

    /// Returns the port at which the other nodes and the clients of the cluster connect to a node.
    func announcedPort(of node: LocalRedis) -> Int {
        self.proxies(of: node)?.data.port ?? node.port
    }

    private func node(announcing port: Int) -> LocalRedis? {
        self.nodes.first { self.announcedPort(of: $0) == port }
    }

    // MARK: Health and failover

    /// Waits until all running nodes agree that all slots are served by running masters, and each
    /// other running node replicates one of them, as all of them know. Killed and paused nodes do not count.
    ///
    /// - Throws: ``LocalRedisError`` with the code ``LocalRedisError/Code/timedOut``.
    public func waitUntilHealthy(within timeout: Duration = .seconds(60)) async throws {
        try await waitUntil("the nodes of the cluster agree that all slots are served", within: timeout) {
            try await self.checkHealth()
            return true
        }
    }

    private func checkHealth() async throws {
        func check(_ isHealthy: Bool, _ problem: String) throws {
            if !isHealthy { throw LocalRedisError(.notHealthy, problem) }
        }
        let first = try self.anyNode()
        let (slots, epochs) = (try await self.slots(by: first), try await self.epochs(by: first))
        let roles = try await self.roles(by: first)
        let masters = Set(slots.map(\.port))
        try check(slots.reduce(0, { $0 + $1.slots.count }) == 16384, "not all slots are served: \(slots)")
        for port in masters {
            try check(self.node(announcing: port)?.isResponsive == true, "the master on port \(port) is not running")
        }
        for node in self.nodes where node.isResponsive {
            let port = self.announcedPort(of: node)
            let (seen, known) = (try await self.slots(by: node), try await self.epochs(by: node))
            try check(seen == slots, "the nodes on ports \(port) and \(first.port) see \(seen) and \(slots)")
            try check(known == epochs, "the nodes on ports \(port) and \(first.port) know \(known) and \(epochs)")
            let others = try await self.roles(by: node)
            try check(others == roles, "the nodes on ports \(port) and \(first.port) know \(others) and \(roles)")
            let info = try await node.send("CLUSTER", "INFO").string ?? ""
            try check(info.contains("cluster_state:ok"), "the state of the node on port \(port) is not ok")
            let role = try await node.send("ROLE").array ?? []
            if masters.contains(port) {
                try check(role.first?.string == "master", "the node on port \(port) is no master: \(role)")
            } else {
                let isReplica = role.count == 5 && masters.contains(role[2].integer ?? 0)
                try check(
                    isReplica && role[3].string == "connected", "the node on port \(port) replicates nothing: \(role)")
            }
        }
    }

    /// The configuration epoch of each master that serves slots, by its id, as a node knows it.
    ///
    /// The other masters do not vote for a replica that knows an older epoch of its master than they do. So a master that
    /// dies before its replica knows its epoch is not replaced.
    func epochs(by node: LocalRedis) async throws -> [String: Int] {
        var epochs: [String: Int] = [:]
        for line in try await self.lines(of: node) where line.count > 8 && line[2].contains("master") {
            epochs[line[0]] = Int(line[6])
        }
        return epochs
    }

    /// The id of the master of each running node, `-` for a master, by the node's id, as a node knows it.
    ///
    /// The masters do not vote for a replica that they take for a master. They learn by gossip, seconds later, that a master
    /// has become a replica. Until then it cannot be promoted again.
    private func roles(by node: LocalRedis) async throws -> [String: String] {
        var roles: [String: String] = [:]
        for line in try await self.lines(of: node) {
            let port = line[1].split(separator: ":").last?.split(separator: "@").first.flatMap { Int($0) }
            if let port, self.node(announcing: port)?.isResponsive == true { roles[line[0]] = line[3] }
        }
        return roles
    }

    /// The fields of each line of `CLUSTER NODES`: id, address, flags, master, ping, pong, epoch, link, slots.
    private func lines(of node: LocalRedis) async throws -> [[String]] {
        let reply = try await node.send("CLUSTER", "NODES").string ?? ""
        return reply.split(whereSeparator: \.isNewline).map { $0.split(separator: " ").map { String($0) } }
            .filter { $0.count > 7 }
    }

    /// Promotes a replica while its master runs (`CLUSTER FAILOVER`), and returns when the cluster
    /// is healthy again.
    ///
    /// The other masters vote for a replica of a master only if they have not done so for two times
    /// ``Configuration/nodeTimeout``, and a replica that lacked votes asks again after four times. So the same master can be
    /// replaced again only after a pause.
    ///
    /// - Throws: ``LocalRedisError`` with the code ``LocalRedisError/Code/timedOut`` and what the replica
    ///   or the cluster was like last; `RedisError` if the node is a master.
    public func promote(_ replica: LocalRedis, within timeout: Duration = .seconds(60)) async throws {
        _ = try await replica.send("CLUSTER", "FAILOVER")
        var sent = ContinuousClock.now
        try await waitUntil("the replica on port \(replica.port) is promoted", within: timeout) {
            let role = try await replica.send("ROLE").array ?? []
            if role.first?.string == "master" { return true }
            // The nodes give up after 5 s, without an error, for example when the replica has not caught up.
            if sent.duration(to: .now) > .seconds(6) {
                sent = .now
                _ = try await replica.send("CLUSTER", "FAILOVER")
            }
            throw LocalRedisError(.notHealthy, "its role is \(role)")
        }
        try await self.waitUntilHealthy(within: timeout)
    }
}

/// Runs a body with a cluster, and stops the cluster when the body returns or throws.
///
/// - Parameters:
///   - configuration: the number of the nodes, and their configuration.
///   - body: the code that uses the cluster. The nodes and their folders are removed when it ends.
/// - Returns: the result of the body.
/// - Throws: the errors of the body and of ``LocalCluster/start(_:)``.
@discardableResult
public func withLocalCluster<R>(
    _ configuration: LocalCluster.Configuration = LocalCluster.Configuration(),
    body: (LocalCluster) async throws -> R
) async throws -> R {
    let cluster = try await LocalCluster.start(configuration)
    do {
        let result = try await body(cluster)
        await cluster.stop()
        return result
    } catch {
        await cluster.stop()
        throw error
    }
}
