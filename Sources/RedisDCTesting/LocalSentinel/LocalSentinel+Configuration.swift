extension LocalSentinel {
    /// The configuration of a ``LocalSentinel``.
    public struct Configuration: Sendable {
        /// The configuration of the master and of each replica; the default of ``LocalRedis`` by
        /// default.
        ///
        /// The sentinels and the replicas log in with its password. With certificates, the servers and
        /// the sentinels have TLS ports as well; the sentinels name the other ports, so that a client
        /// that uses TLS must translate them.
        public var server: LocalRedis.Configuration
        /// The number of replicas, at least 1; 2 by default.
        public var replicas: Int
        /// The number of sentinels, at least 1; 3 by default. A majority of them elects a master.
        public var sentinels: Int
        /// The name under which the sentinels know the master; `main` by default.
        public var name: String
        /// The password of the sentinels' default user; none by default.
        public var sentinelPassword: String?
        /// The time after which a sentinel considers a server that does not reply as down, at least
        /// 100 ms; one second by default.
        ///
        /// After that, the election of a new master takes about another second. A short time makes
        /// a server that is only slow lose its role.
        public var downAfter: Duration
        /// Whether a server can be separated from the others: see ``LocalSentinel/separate(_:)``;
        /// false by default.
        ///
        /// If true, each server announces the port of a proxy, through which the sentinels, the
        /// replicas and clients of the sentinels connect to it.
        public var isSplittable: Bool

        /// Creates a configuration.
        ///
        /// - Parameters:
        ///   - server: the configuration of the master and of each replica.
        ///   - replicas: the number of replicas, at least 1.
        ///   - sentinels: the number of sentinels, at least 1.
        ///   - name: the name under which the sentinels know the master, without spaces.
        ///   - sentinelPassword: the password of the sentinels' default user.
        ///   - downAfter: the time after which a server that does not reply counts as down.
        ///   - isSplittable: whether a server can be separated from the others.
        public init(
            server: LocalRedis.Configuration = LocalRedis.Configuration(),
            replicas: Int = 2,
            sentinels: Int = 3,
            name: String = "main",
            sentinelPassword: String? = nil,
            downAfter: Duration = .seconds(1),
            isSplittable: Bool = false
        ) {
            self.server = server
            self.replicas = replicas
            self.sentinels = sentinels
            self.name = name
            self.sentinelPassword = sentinelPassword
            self.downAfter = downAfter
            self.isSplittable = isSplittable
        }
    }
}

extension LocalSentinel.Configuration {
    /// Returns the configuration of the server at a position; the server at 0 is the master.
    ///
    /// - Parameter announced: the ports at which others connect to the servers.
    func server(_ index: Int, announced: [Int]) -> LocalRedis.Configuration {
        var server = self.server
        // The sentinels rewrite it with the server's role.
        server.keepsConfigFile = true
        // A replica replies that it is loading until it has its master's data.
        server.waitUntilLoaded = server.waitUntilLoaded && index == 0
        var lines = ["repl-diskless-sync-delay 0", "repl-ping-replica-period 1"]
        if let password = server.password { lines.append("masterauth \(ServerConfigFile.quoted(password))") }
        if self.isSplittable {
            lines += ["replica-announce-ip 127.0.0.1", "replica-announce-port \(announced[index])"]
        }
        if index > 0 { lines.append("replicaof 127.0.0.1 \(announced[0])") }
        server.extra = lines + server.extra
        return server
    }

    /// Returns the configuration of the sentinel at a position.
    ///
    /// The sentinels know all servers and one another from the start. They would otherwise find the
    /// others after some seconds.
    func sentinel(_ index: Int, ids: [String], ports: [Int], servers: [Int]) -> LocalRedis.Configuration {
        var sentinel = LocalRedis.Configuration(
            binary: self.server.binary, password: self.sentinelPassword, tls: self.server.tls,
            startTimeout: self.server.startTimeout)
        sentinel.kind = .sentinel
        sentinel.keepsConfigFile = true
        var lines = [
            "sentinel myid \(ids[index])",
            "sentinel monitor \(self.name) 127.0.0.1 \(servers[0]) \(self.sentinels / 2 + 1)",
            "sentinel down-after-milliseconds \(self.name) \(max(100, Int(self.downAfter / .milliseconds(1))))",
            "sentinel failover-timeout \(self.name) 5000",
        ]
        if let password = self.server.password {
            lines.append("sentinel auth-pass \(self.name) \(ServerConfigFile.quoted(password))")
        }
        lines += servers.dropFirst().map { "sentinel known-replica \(self.name) 127.0.0.1 \($0)" }
        for other in ids.indices where other != index {
            lines.append("sentinel known-sentinel \(self.name) 127.0.0.1 \(ports[other]) \(ids[other])")
        }
        sentinel.extra = lines
        return sentinel
    }
}
