// How to reach a Redis, and the limits and times of the client.

/// Where a Redis is and how the client behaves. Every default is safe for production.
///
/// ```swift
/// var configuration = try RedisConfiguration(url: "rediss://alice:secret@redis.example:6380/2")
/// configuration.commandTimeout = .seconds(2)
/// ```
///
/// Or from a struct alone: `RedisConfiguration(endpoint: .tcp(host: "127.0.0.1", port: 6379))`.
public struct RedisConfiguration: Sendable {
    public enum Endpoint: Sendable, Hashable, CustomStringConvertible {
        case tcp(host: String, port: Int)
        case unixSocket(path: String)

        public var description: String {
            switch self {
            case .tcp(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
            case .unixSocket(let path): path
            }
        }
    }

    /// A user of the server. Its description never shows the password.
    public struct Credentials: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
        /// An ACL user; `nil` is the server's default user.
        public var username: String?
        public var password: String

        public init(username: String? = nil, password: String) {
            self.username = username
            self.password = password
        }

        public var description: String { "\(username ?? "default"):***" }
        public var debugDescription: String { description }
        public var customMirror: Mirror { Mirror(self, children: ["username": username ?? "default"]) }
    }

    /// Bounds on what a server may send. A reply beyond them fails with `.replyTooLarge` and closes the connection.
    public struct Limits: Sendable, Hashable {
        /// Most bytes of one reply on the wire. Default 64 MiB.
        public var replyBytes = 64 * 1024 * 1024
        /// Most elements of one reply, nested ones included. Default 4,194,304.
        public var replyElements = 4 * 1024 * 1024
        /// Most arrays within one another. Default 7, which is all that hiredis 0.14 can read; 1.x reads more.
        public var replyDepth = 7

        public init() {}
    }

    public var endpoint: Endpoint
    public var credentials: Credentials?
    /// The database that `SELECT` chooses, from 0.
    public var database = 0
    /// TLS with the server's certificate and name verified; `nil` is a plain connection.
    public var tls: RedisTLS?
    /// What `CLIENT LIST` calls this client's connections. Default `redisdc`; no spaces.
    public var clientName = "redisdc"

    /// Longest time for a connection to be made, TLS, login and all. Default 5 s.
    public var connectTimeout: Duration = .seconds(5)
    /// Deadline of a call that gives none itself, including the wait for a connection. Default 10 s.
    public var commandTimeout: Duration = .seconds(10)
    /// A server that owes a reply and sends nothing for so long is taken for dead, and the connection is made anew.
    /// Default 30 s. A blocked lane owes nothing.
    public var silenceLimit: Duration = .seconds(30)

    /// First and longest pause between attempts to connect; it doubles in between, with jitter. Default 50 ms to 5 s.
    public var reconnectDelay: ClosedRange<Duration> = .milliseconds(50)...(.seconds(5))

    /// Most blocking commands that may wait at once, each on a connection of its own. Default 256.
    public var maxLanes = 256
    /// A lane unused for so long is closed. Default 30 s.
    public var laneIdleTimeout: Duration = .seconds(30)
    /// For a user without `CLIENT UNBLOCK` a blocking command is sent in slices of this length, because it cannot be
    /// interrupted: cancelling takes so long, and each slice queues anew. Default 1 s, at least 10 ms.
    public var blockingSlice: Duration = .seconds(1)
    /// How long a cancelled or timed-out blocking command may hold its caller up while its outcome is settled with the
    /// server; after that it is settled in the background. Default 2 s.
    public var settleTimeout: Duration = .seconds(2)

    /// A subscription connection on which nothing came for so long is probed; after as long again without any sign of
    /// life it is made anew. Default 5 s.
    public var probeInterval: Duration = .seconds(5)

    public var limits = Limits()
    public var instruments = RedisInstruments()

    public init(endpoint: Endpoint, credentials: Credentials? = nil, tls: RedisTLS? = nil) {
        self.endpoint = endpoint
        self.credentials = credentials
        self.tls = tls
    }
}

extension RedisConfiguration {
    /// Throws `.invalidArgument` for a value out of its range, before anything is sent.
    func validate() throws(RedisError) {
        func require(_ holds: Bool, _ message: @autoclosure () -> String) throws(RedisError) {
            if !holds { throw RedisError(.invalidArgument, message()) }
        }
        try require(database >= 0, "database is \(database), must be 0 or more")
        try require(
            clientName.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }, "clientName may only have printable ASCII, no spaces"
        )
        for (name, value) in [
            ("connectTimeout", connectTimeout), ("commandTimeout", commandTimeout), ("silenceLimit", silenceLimit),
            ("reconnectDelay", reconnectDelay.lowerBound), ("laneIdleTimeout", laneIdleTimeout),
            ("settleTimeout", settleTimeout), ("probeInterval", probeInterval),
        ] { try require(value > .zero, "\(name) is \(value), must be more than 0") }
        try require(blockingSlice >= .milliseconds(10), "blockingSlice is \(blockingSlice), must be at least 10 ms")
        try require(maxLanes >= 1, "maxLanes is \(maxLanes), must be at least 1")
        try require(
            limits.replyBytes >= 1024 && limits.replyElements >= 1 && limits.replyDepth >= 1,
            "limits must allow replies of at least 1024 bytes, 1 element and depth 1")
    }
}
