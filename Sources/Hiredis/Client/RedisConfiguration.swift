/// The address of a Redis server, and the limits and timeouts of the client. Every default is safe
/// for production.
///
/// ```swift
/// var configuration = try RedisConfiguration(url: "rediss://alice:secret@redis.example:6380/2")
/// configuration.commandTimeout = .seconds(2)
/// ```
///
/// Without a URL: `RedisConfiguration(endpoint: .tcp(host: "127.0.0.1", port: 6379))`.
public struct RedisConfiguration: Sendable {
    /// The address of a server.
    public enum Endpoint: Sendable, Hashable, CustomStringConvertible {
        /// A host name or IP address, and a TCP port.
        case tcp(host: String, port: Int)
        /// The path of a Unix domain socket.
        case unixSocket(path: String)

        /// The host and the port, or the path.
        public var description: String {
            switch self {
            case .tcp(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
            case .unixSocket(let path): path
            }
        }
    }

    /// The user and the password to log in with. The description never shows the password.
    public struct Credentials: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
        /// The name of an ACL user; `nil` is the server's default user.
        public var username: String?
        /// The password of the user.
        public var password: String

        /// Makes credentials. Without a user name they are those of the server's default user.
        public init(username: String? = nil, password: String) {
            self.username = username
            self.password = password
        }

        /// The user's name, without the password.
        public var description: String { "\(username ?? "default"):***" }
        /// The user's name, without the password.
        public var debugDescription: String { description }
        /// A mirror without the password.
        public var customMirror: Mirror { Mirror(self, children: ["username": username ?? "default"]) }
    }

    /// Limits on the size of a reply. A larger reply fails with `.replyTooLarge` and closes the
    /// connection.
    public struct Limits: Sendable, Hashable {
        /// The maximum number of bytes of one reply on the wire, at least 1,024. Default 64 MiB.
        public var replyBytes = 64 * 1024 * 1024
        /// The maximum number of elements in one reply, including nested ones, at least 1. Default
        /// 4,194,304.
        public var replyElements = 4 * 1024 * 1024
        /// The maximum depth of nested arrays, at least 1. Default 7, the most that hiredis 0.14
        /// can read; 1.x reads more.
        public var replyDepth = 7

        /// Makes the default limits.
        public init() {}
    }

    /// The address of the server; with another topology than ``RedisTopology/single``, the first of
    /// its addresses.
    public var endpoint: Endpoint
    /// The way in which the client finds its servers. Default: one server, at ``endpoint``.
    public var topology = RedisTopology.single
    /// The user and the password for the sentinels; `nil` does not log in to them. Default `nil`.
    public var sentinelCredentials: Credentials?
    /// TLS settings for the sentinels; `nil` is a plain connection. Default `nil`.
    public var sentinelTLS: RedisTLS?
    /// The addresses to connect to instead of those that sentinels or the servers of a cluster
    /// name, for servers behind a translation of addresses. Other addresses are used as they are. Default: none.
    public var addressMap: [Endpoint: Endpoint] = [:]
    /// The user and the password to log in with; `nil` does not log in.
    public var credentials: Credentials?
    /// The number of the database that `SELECT` selects, from 0. Default 0.
    public var database = 0
    /// TLS settings; `nil` is a plain connection. Default `nil`.
    public var tls: RedisTLS?
    /// The name of this client's connections in `CLIENT LIST`: printable ASCII without spaces.
    /// Default `redisdc`.
    public var clientName = "redisdc"

    /// The maximum time to make a connection, including TLS and login; more than 0. Default 5 s.
    public var connectTimeout: Duration = .seconds(5)
    /// The timeout of a call that has none of its own, including the wait for a connection; more
    /// than 0. Default 10 s.
    public var commandTimeout: Duration = .seconds(10)
    /// The time after which a server that owes a reply and sends nothing is suspected to be dead. If it
    /// is silent for a quarter of the time more, the client reconnects. More than 0, default 30 s. It
    /// does not apply to lanes, where a command may block.
    ///
    /// It is shorter while a heartbeat of a coordinator's or presence's session is outstanding: a third
    /// of the session's TTL, but at least 1 s. So a connection that the network has lost without a word
    /// is replaced before the session expires, if its TTL is 3 s or more.
    public var silenceLimit: Duration = .seconds(30)

    /// The first and the longest pause between attempts to connect. It doubles in between, with
    /// jitter, up to a day. More than 0, default 50 ms to 5 s.
    public var reconnectDelay: ClosedRange<Duration> = .milliseconds(50)...(.seconds(5))

    /// The maximum number of lanes, the connections for one blocking command or dedicated use each, in
    /// a cluster for each master; at least 1. Default 256.
    public var maxLanes = 256
    /// The time after which an idle lane is closed; more than 0. Default 30 s.
    public var laneIdleTimeout: Duration = .seconds(30)
    /// The length of the slices in which a blocking command is sent for a user without the right to
    /// `CLIENT UNBLOCK`, because it cannot be interrupted: cancellation takes up to this long, and
    /// each slice joins the end of the server's queue. At least 10 ms, default 1 s.
    public var blockingSlice: Duration = .seconds(1)
    /// The maximum time for which a cancelled or timed-out blocking command delays its caller while
    /// its outcome is settled with the server. After that it is settled in the background. More
    /// than 0, default 2 s.
    public var settleTimeout: Duration = .seconds(2)

    /// The time of silence after which the subscription connection is probed. After the same time
    /// without an answer the client reconnects. More than 0, default 5 s.
    public var probeInterval: Duration = .seconds(5)

    /// Limits on the size of a reply.
    public var limits = Limits()
    /// The maximum number of bytes of commands that wait to be sent on a connection, at least
    /// 1,024. Default 64 MiB.
    ///
    /// When the network or the server accepts commands more slowly than tasks send them, further
    /// calls wait until there is room, in their order and until their timeout. Each command counts
    /// 256 bytes beside its own. One that is larger than the limit is sent when no other waits.
    public var maxUnsentBytes = 64 * 1024 * 1024
    /// The backends that receive the client's logs, metrics and spans.
    public var instruments = RedisInstruments()

    /// Makes a configuration with the defaults for everything else.
    public init(endpoint: Endpoint, credentials: Credentials? = nil, tls: RedisTLS? = nil) {
        self.endpoint = endpoint
        self.credentials = credentials
        self.tls = tls
    }

    /// Makes a configuration for a cluster, with the defaults for everything else.
    ///
    /// - Parameters:
    ///   - seeds: the addresses of servers of the cluster, at least one.
    ///   - credentials: the user and the password for all servers.
    ///   - tls: TLS settings for all servers.
    public init(cluster seeds: [Endpoint], credentials: Credentials? = nil, tls: RedisTLS? = nil) {
        self.init(endpoint: seeds.first ?? .tcp(host: "", port: 0), credentials: credentials, tls: tls)
        topology = .cluster(seeds: seeds)
    }

    /// Makes a configuration for the master that a majority of sentinels names, with the defaults for
    /// everything else.
    ///
    /// - Parameters:
    ///   - name: the name under which the sentinels know the master.
    ///   - sentinels: the addresses of all sentinels, at least one.
    ///   - credentials: the user and the password for the master.
    ///   - tls: TLS settings for the master and for the sentinels.
    public init(
        master name: String, sentinels: [Endpoint], credentials: Credentials? = nil, tls: RedisTLS? = nil
    ) {
        self.init(endpoint: sentinels.first ?? .tcp(host: "", port: 0), credentials: credentials, tls: tls)
        topology = .sentinel(name: name, addresses: sentinels)
        sentinelTLS = tls
    }
}

extension RedisConfiguration {
    /// Checks all values.
    ///
    /// - Throws: `.invalidArgument` for a value out of its range.
    func validate() throws(RedisError) {
        func require(_ holds: Bool, _ message: @autoclosure () -> String) throws(RedisError) {
            if !holds { throw RedisError(.invalidArgument, message()) }
        }
        try require(database >= 0, "database is \(database), expected 0 or more")
        try require(
            clientName.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F },
            "clientName contains a space or a character that is not printable ASCII"
        )
        for (name, value) in [
            ("connectTimeout", connectTimeout), ("commandTimeout", commandTimeout), ("silenceLimit", silenceLimit),
            ("reconnectDelay", reconnectDelay.lowerBound), ("laneIdleTimeout", laneIdleTimeout),
            ("settleTimeout", settleTimeout), ("probeInterval", probeInterval),
        ] { try require(value > .zero, "\(name) is \(value), expected more than 0") }
        try require(blockingSlice >= .milliseconds(10), "blockingSlice is \(blockingSlice), expected at least 10 ms")
        try require(maxLanes >= 1, "maxLanes is \(maxLanes), expected at least 1")
        try require(
            limits.replyBytes >= 1024 && limits.replyElements >= 1 && limits.replyDepth >= 1,
            "limits is \(limits), expected at least 1024 bytes, 1 element and depth 1")
        try require(maxUnsentBytes >= 1024, "maxUnsentBytes is \(maxUnsentBytes), expected at least 1024")
        switch topology {
        case .single: break
        case .sentinel(let name, let addresses):
            try require(!name.isEmpty, "the name of the master is empty")
            try require(!addresses.isEmpty, "there is no address of a sentinel")
            try require(Set(addresses).count == addresses.count, "the address of a sentinel occurs twice")
        case .cluster(let seeds):
            try require(!seeds.isEmpty, "there is no address of a server of the cluster")
            try require(database == 0, "database is \(database), expected 0: a cluster has only one")
        }
    }
}
