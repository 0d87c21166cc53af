/// The settings of a ``Gateway``. Every default is safe for production.
public struct GatewayConfiguration: Sendable {
    /// The time after which a session ends and its client must log in again, from 1 min. Default
    /// 12 h.
    public var sessionLifetime: Duration = .seconds(12 * 3600)
    /// The origins whose pages may use the gateway: `https://chat.example`, without a path. Default
    /// none.
    public var allowedOrigins: Set<String> = []
    /// Whether browsers reach the gateway over TLS: the cookie is then `Secure`, with the prefix
    /// `__Host-`. Default `true`; set it to `false` only for a loopback address.
    public var isSecure = true
    /// Whether the last address in the header `X-Forwarded-For` is the client's, because a proxy
    /// that sets it is the only way to the gateway. Default `false`.
    public var trustsForwardedFor = false
    /// The maximum size of a request's body and of a WebSocket message in bytes. Default 1 MiB.
    public var maxBodyBytes = 1 << 20
    /// The maximum size of a login's body in bytes. Default 16 KiB.
    public var maxLoginBodyBytes = 16 * 1024
    /// The maximum number of bytes of bodies that are still arriving, of all requests at this node.
    /// Beyond it, the connection is closed whose body has held the most bytes for the longest time, as
    /// the product of both. Default 64 MiB.
    public var maxBodyBytesInFlight = 64 << 20
    /// The maximum number of open connections at this node; a further one is closed at once. Default
    /// 10,000.
    public var maxConnections = 10_000
    /// The maximum number of open connections from one IPv4 address, or from one network of 64 bits
    /// of IPv6, at this node; a further one is closed at once. `nil` for no limit. It does not apply
    /// with ``trustsForwardedFor``: all connections are then the proxy's. Default 256.
    public var maxConnectionsOfAddress: Int? = 256
    /// The maximum size of a request's header in bytes. Default 32 KiB.
    public var maxHeaderBytes = 32 * 1024
    /// The maximum size of a WebSocket's first frame, which authenticates it, in bytes. Default
    /// 4 KiB.
    public var maxAuthenticationBytes = 4096
    /// The maximum number of frames of one message of a WebSocket. Default 256.
    public var maxFragments = 256
    /// The number of frames that a client may send on a WebSocket in a second, twice as many at
    /// once; `nil` for no limit. Default 200.
    public var maxFramesPerSecond: Int? = 200
    /// The maximum number of open streams of one session at this node. Default 4: a newer stream of
    /// a device ends the older one, but not at once.
    public var maxStreamsOfSession = 4
    /// The maximum number of polls of one session at this node that wait, or whose reply has not left.
    /// Default 8.
    public var maxPollsOfSession = 8
    /// The maximum number of bytes that the operating system buffers for a connection whose client
    /// does not read; Linux takes twice as much memory. Default 128 KiB.
    public var sendBufferBytes = 128 * 1024
    /// The number of signed requests of a session that are allowed in a second, at all nodes
    /// together; `nil` for no limit. Default 50.
    public var requestsPerSecond: Int? = 50
    /// The number of logins of a user from one address that are allowed in a minute, at all nodes
    /// together. Default 10.
    ///
    /// Attempts from other addresses do not count, so nobody can keep a user from logging in
    /// elsewhere. In return, somebody with many addresses may try a credential at each of them: an
    /// application whose users choose passwords refuses short ones. Where the address is not known,
    /// all clients count as one address.
    public var loginsOfUserPerMinute = 10
    /// The number of logins from an address that are allowed in a minute, at all nodes together.
    /// Default 120.
    public var loginsFromAddressPerMinute = 120
    /// The time after which a stream without events gets a comment or a ping. Default 15 s.
    public var keepAliveInterval: Duration = .seconds(15)
    /// The time after which a stream is closed that takes nothing that is written to it. Default
    /// 30 s.
    public var maxWriteTime: Duration = .seconds(30)
    /// The time for which a WebSocket may be silent, without even a pong, before it is closed.
    /// Default 45 s.
    public var maxSilence: Duration = .seconds(45)
    /// The time within which a WebSocket's first frame must arrive. Default 5 s.
    public var authenticationTime: Duration = .seconds(5)
    /// The time within which a request's header must arrive, and after which an idle connection is
    /// closed. Default 10 s.
    public var headerTime: Duration = .seconds(10)
    /// The time within which a request's body must arrive after its header. Default 60 s.
    public var bodyTime: Duration = .seconds(60)
    /// The time after which clients of event streams reconnect when a connection breaks, or a node
    /// dies: at most this at the first attempt, and longer after each that fails. Default 2 s.
    public var reconnectDelay: Duration = .seconds(2)
    /// The time after which clients reconnect when a node stops: a random time up to it, so that
    /// they do not all come at once. Default 3 s.
    public var maxReconnectTime: Duration = .seconds(3)

    /// The maximum number of bytes of messages that are held for one stream, besides what the
    /// connection has buffered. A single larger message is held too.
    static let maxPageBytes = 256 * 1024
    /// The number of bytes that are read from a connection at once: what a client can make the node hold that nobody reads.
    static let maxReadBytes = 16 * 1024
    /// The number of new connections from which an event loop reads in a millisecond: a new connection costs 0.3 ms of a core.
    static let connectionsPerMillisecond = 1
    /// The number of reads of an event loop from long bodies in a millisecond: 64 MiB in a second.
    static let bodyReadsPerMillisecond = 4
    /// The size up to which the rest of a body is read after its reply, so that the connection can be used again.
    static let maxDiscardedBytes = 64 * 1024
    /// The size above which a page must have left before the next one is read. A connection takes
    /// 64 KiB without waiting.
    static let maxUnwaitedBytes = 32 * 1024

    /// Creates a configuration with the default values.
    public init() {}
}
