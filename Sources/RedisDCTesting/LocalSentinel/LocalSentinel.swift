import Hiredis

/// A Redis master, its replicas, and the sentinels that elect a new master, for one test.
///
/// ```swift
/// try await withLocalSentinel { sentinel in
///     let old = try await sentinel.master()
///     await old.kill()                          // SIGKILL; the sentinels notice it after a second
///     let new = try await sentinel.waitForMaster(otherThan: old)
///     #expect(new.port != old.port)
///     try await old.restart()
///     try await sentinel.waitUntilHealthy()     // the old master follows the new one
/// }
/// ```
///
/// It is ready in about a second, and has the guarantees of ``LocalRedis``: all servers listen on
/// loopback only, and end with the process that started them.
///
/// The servers are ``LocalRedis`` objects, so each of them can be killed, paused, resumed and
/// restarted. A restarted server has the role that the sentinels have given it last.
///
/// **Limits**
/// - A paused server stands for one behind a partition: its clients and the sentinels cannot reach
///   it, and when it is resumed it still believes to have its old role. For a server that clients on
///   its side of a partition still reach, see ``separate(_:)``.
/// - The server program must be able to run as a sentinel, as `redis-server` and `valkey-server`
///   are.
public final class LocalSentinel: Sendable {
    /// The master at the start, followed by the replicas. Their roles change with each failover.
    public let servers: [LocalRedis]
    /// The sentinels.
    public let sentinels: [LocalRedis]
    /// The name under which the sentinels know the master.
    public var name: String { self.configuration.name }
    private let configuration: Configuration
    /// The proxy of each server if the servers can be separated, otherwise empty.
    let proxies: [FaultProxy]

    private init(
        _ configuration: Configuration, servers: [LocalRedis], sentinels: [LocalRedis], proxies: [FaultProxy]
    ) {
        self.configuration = configuration
        self.servers = servers
        self.sentinels = sentinels
        self.proxies = proxies
    }

    /// Starts a master, its replicas and the sentinels, and returns when they are healthy: see
    /// ``waitUntilHealthy(within:)``.
    ///
    /// Call ``stop()`` when they are no longer needed, or use ``withLocalSentinel(_:body:)``, which
    /// does. If the start fails or the task is cancelled, no process and no folder remain.
    ///
    /// - Throws: what ``LocalRedis/start(_:)`` and ``waitUntilHealthy(within:)`` throw.
    public static func start(_ configuration: Configuration = Configuration()) async throws -> LocalSentinel {
        let serverCount = configuration.replicas + 1
        for _ in 1...20 {
            let ports = ServerEndpoints.distinct(serverCount + configuration.sentinels, in: ServerEndpoints.ports)
            let serverPorts = Array(ports.prefix(serverCount))
            let sentinelPorts = Array(ports.dropFirst(serverCount))
            let ids = sentinelPorts.map { _ in String.randomID() }
            // A proxy that is released is stopped.
            var proxies: [FaultProxy] = []
            if configuration.isSplittable {
                for port in serverPorts { proxies.append(try await FaultProxy.start(to: .port(port))) }
            }
            let announced = configuration.isSplittable ? proxies.map(\.port) : serverPorts
            let data = serverPorts.indices.map { (configuration.server($0, announced: announced), serverPorts[$0]) }
            let watching = sentinelPorts.indices.map { index in
                let sentinel = configuration.sentinel(index, ids: ids, ports: sentinelPorts, servers: announced)
                return (sentinel, sentinelPorts[index])
            }
            guard let started = try await startServers(data + watching) else { continue }
            let all = LocalSentinel(
                configuration, servers: Array(started.prefix(serverCount)),
                sentinels: Array(started.dropFirst(serverCount)), proxies: proxies)
            do {
                try await all.waitUntilHealthy(within: configuration.server.startTimeout)
                return all
            } catch {
                await all.stop()
                throw error
            }
        }
        throw LocalRedisError.noFreePorts
    }

    /// Ends all servers and sentinels, and removes their folders: see ``LocalRedis/stop()``.
    public func stop() async {
        await stopServers(self.sentinels + self.servers)
        for proxy in self.proxies { await proxy.stop() }
    }

    /// The URL of the master for clients that ask the sentinels,
    /// `redis-sentinel://HOST:PORT,HOST:PORT/NAME`, including the passwords if there are any.
    public var url: String {
        let addresses = self.sentinels.map { "127.0.0.1:\($0.port)" }.joined(separator: ",")
        let password = self.configuration.sentinelPassword.map { "?sentinel-password=\($0.percentEncoded)" } ?? ""
        return "redis-sentinel://\(self.servers[0].userInfo)\(addresses)/\(self.name)\(password)"
    }

    // MARK: Roles

    /// Returns the server that a majority of all sentinels names as the master.
    ///
    /// - Throws: ``LocalRedisError`` with the code ``LocalRedisError/Code/notHealthy`` if no majority
    ///   names the same server.
    public func master() async throws -> LocalRedis {
        var votes: [Int: Int] = [:]
        for sentinel in self.sentinels where sentinel.isResponsive {
            if let port = try? await self.masterPort(by: sentinel) { votes[port, default: 0] += 1 }
        }
        guard let port = votes.first(where: { $0.value > self.sentinels.count / 2 })?.key,
            let master = self.servers.first(where: { self.announcedPort(of: $0) == port })
        else {
            throw LocalRedisError(.notHealthy, "no majority of the \(self.sentinels.count) sentinels names a master")
        }
        return master
    }

    /// Returns the servers other than the master, running or not.
    ///
    /// - Throws: what ``master()`` throws.
    public func replicas() async throws -> [LocalRedis] {
        let master = try await self.master()
        return self.servers.filter { $0 !== master }
    }

    /// Returns the port at which the sentinels and the other servers connect to a server.
    func announcedPort(of server: LocalRedis) -> Int {
        self.proxy(of: server)?.port ?? server.port
    }

    /// Returns the proxy of a server, or nil if the servers cannot be separated.
    func proxy(of server: LocalRedis) -> FaultProxy? {
        zip(self.servers, self.proxies).first { $0.0 === server }?.1
    }

    private func masterPort(by sentinel: LocalRedis) async throws -> Int? {
        try await sentinel.send("SENTINEL", "GET-MASTER-ADDR-BY-NAME", .string(self.name)).array?.last?.integer
    }

    // MARK: Failover

    /// Makes the sentinels promote a replica while the master runs, and returns the new master.
    ///
    /// - Throws: ``LocalRedisError`` with the code ``LocalRedisError/Code/timedOut`` if there is no
    ///   new master within the time, for example because no replica is running.
    public func failover(within timeout: Duration = .seconds(60)) async throws -> LocalRedis {
        let old = try await self.master()
        var sent: ContinuousClock.Instant?
        try await waitUntil("the sentinels promote another server", within: timeout) {
            let master = try await self.master()
            if master !== old { return try await master.send("ROLE").array?.first?.string == "master" }
            // A sentinel refuses the request until it knows the state of a replica. It gives up what it has begun, without
            // an error, when the replica does not become the master in time. The next attempt comes after all sentinels
            // have asked the servers again, which they do every ten seconds.
            if let sent, sent.duration(to: .now) < .seconds(13) { return false }
            guard try await self.sentinelsKnowReplicas() else { return false }
            guard let sentinel = self.sentinels.first(where: { $0.isResponsive }) else { return false }
            if try await sentinel.send("SENTINEL", "FAILOVER", .string(self.name)).string == "OK" { sent = .now }
            return false
        }
        return try await self.master()
    }

    /// Returns whether all running sentinels know that the running servers other than the master are replicas.
    ///
    /// A sentinel asks the servers every ten seconds. One that was a master when it was last asked, and is promoted before
    /// it is asked again, has been a master all the time for that sentinel, which makes it a replica again.
    private func sentinelsKnowReplicas() async throws -> Bool {
        let running = Set(try await self.replicas().filter(\.isResponsive).map { self.announcedPort(of: $0) })
        for sentinel in self.sentinels where sentinel.isResponsive {
            let entries = try await sentinel.send("SENTINEL", "REPLICAS", .string(self.name)).array ?? []
            var known = Set<Int>()
            for entry in entries.compactMap(\.array) {
                let texts = entry.map { $0.string ?? "" }
                let value = { (name: String) in texts.firstIndex(of: name).flatMap { texts.dropFirst($0 + 1).first } }
                if value("role-reported") == "slave", let port = value("port").flatMap({ Int($0) }) {
                    known.insert(port)
                }
            }
            guard known.isSuperset(of: running) else { return false }
        }
        return true
    }

    /// Waits until a majority of the sentinels names a new master that has accepted its role, and
    /// returns it.
    ///
    /// - Parameters:
    ///   - old: the master before the failover.
    ///   - timeout: the maximum time to wait.
    /// - Throws: ``LocalRedisError`` with the code ``LocalRedisError/Code/timedOut``.
    public func waitForMaster(
        otherThan old: LocalRedis, within timeout: Duration = .seconds(60)
    ) async throws -> LocalRedis {
        try await waitUntil("a majority of the sentinels names a new master", within: timeout) {
            let master = try await self.master()
            guard master !== old else { return false }
            return try await master.send("ROLE").array?.first?.string == "master"
        }
        return try await self.master()
    }

    /// Waits until all running servers and sentinels agree about their roles, and a failover is
    /// possible.
    ///
    /// That is: all running sentinels name the same running master, enough sentinels for an election
    /// can reach each other, and all other running servers are replicas of the master with an open
    /// connection to it. Killed and paused servers do not count.
    ///
    /// - Throws: ``LocalRedisError`` with the code ``LocalRedisError/Code/timedOut``.
    public func waitUntilHealthy(within timeout: Duration = .seconds(60)) async throws {
        try await waitUntil("the servers and sentinels agree about their roles", within: timeout) {
            let master = try await self.master()
            for sentinel in self.sentinels where sentinel.isResponsive {
                guard try await self.masterPort(by: sentinel) == self.announcedPort(of: master) else { return false }
                _ = try await sentinel.send("SENTINEL", "CKQUORUM", .string(self.name))
            }
            for server in self.servers where server.isResponsive {
                let role = try await server.send("ROLE").array ?? []
                if server === master {
                    guard role.first?.string == "master" else { return false }
                } else {
                    guard role.count == 5, role[2].integer == self.announcedPort(of: master),
                        role[3].string == "connected"
                    else { return false }
                }
            }
            return true
        }
    }
}

/// Runs a body with a master, its replicas and their sentinels, and stops them when the body
/// returns or throws.
///
/// - Parameters:
///   - configuration: the number of the servers, and their configuration.
///   - body: the code that uses the servers. They and their folders are removed when it ends.
/// - Returns: the result of the body.
/// - Throws: the errors of the body and of ``LocalSentinel/start(_:)``.
@discardableResult
public func withLocalSentinel<R>(
    _ configuration: LocalSentinel.Configuration = LocalSentinel.Configuration(),
    body: (LocalSentinel) async throws -> R
) async throws -> R {
    let sentinel = try await LocalSentinel.start(configuration)
    do {
        let result = try await body(sentinel)
        await sentinel.stop()
        return result
    } catch {
        await sentinel.stop()
        throw error
    }
}
