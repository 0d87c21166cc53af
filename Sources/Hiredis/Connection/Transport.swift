import NIOCore
import NIOPosix

/// Opens channels for one client, on one event loop: TCP or Unix domain socket, with TLS or
/// without.
struct Transport: Sendable {
    private(set) var configuration: RedisConfiguration
    let eventLoop: any EventLoop
    /// Names the server to connect to; `nil` when it is the configuration's endpoint.
    private(set) var source: (any EndpointSource)?
    private let tls: TLSContext?

    init(
        configuration: RedisConfiguration, eventLoop: any EventLoop, source: (any EndpointSource)? = nil
    ) throws(RedisError) {
        self.configuration = configuration
        self.eventLoop = eventLoop
        self.source = source
        // Not an Optional.map: it does not pass on the type of the error.
        if let settings = configuration.tls { tls = try TLSContext(settings) } else { tls = nil }
    }

    /// Returns a transport that leads to one server.
    ///
    /// - Parameter connectTimeout: the maximum time to connect, if it is less than the configured one.
    func to(_ endpoint: RedisConfiguration.Endpoint, connectTimeout: Duration? = nil) -> Transport {
        var copy = self
        copy.configuration.endpoint = endpoint
        if let connectTimeout { copy.configuration.connectTimeout = min(connectTimeout, configuration.connectTimeout) }
        copy.source = nil
        return copy
    }

    /// Returns a transport whose server is named by a source.
    func from(_ source: any EndpointSource) -> Transport {
        var copy = self
        copy.source = source
        return copy
    }

    /// Opens a channel. `initialize` adds the handler behind the TLS handler, and runs on the
    /// channel's event loop.
    ///
    /// - Throws: `.cannotConnect`. TLS is negotiated afterwards, and its failures close the
    ///   channel.
    func connect<Connection: Sendable>(
        initialize: @escaping @Sendable (any Channel) throws -> Connection
    ) async throws(RedisError) -> Connection {
        let bootstrap = ClientBootstrap(group: eventLoop).connectTimeout(TimeAmount(configuration.connectTimeout))
        let setUp: @Sendable (any Channel) -> EventLoopFuture<Connection> = { channel in
            channel.eventLoop.makeCompletedFuture {
                try tls?.addHandler(to: channel, endpoint: configuration.endpoint)
                return try initialize(channel)
            }
        }
        do {
            switch configuration.endpoint {
            case .unixSocket(let path):
                return try await bootstrap.connect(unixDomainSocketPath: path, channelInitializer: setUp)
            case .tcp(let host, let port):
                return try await Self.keepingAlive(bootstrap).connect(
                    host: host, port: port, channelInitializer: setUp)
            }
        } catch {
            throw RedisError(
                .cannotConnect, "cannot connect to Redis at \(configuration.endpoint): \(Self.reason(error))",
                underlying: error)
        }
    }

    /// Returns the reason of a failure. The description of NIO's error lists every address instead.
    private static func reason(_ error: any Error) -> String {
        switch error {
        case let error as NIOConnectionError:
            if let attempt = error.connectionErrors.first { return reason(attempt.error) }
            return "unknown host \(error.host)"
        case let error as IOError: return String(cString: strerror(error.errnoCode))
        case ChannelError.connectTimeout: return "no answer in time"
        default: return "\(error)"
        }
    }

    /// Lets the kernel detect a peer that has vanished, which a blocked lane would otherwise never
    /// notice: the first probe after 15 s of silence, then one every 5 s. After 3 unanswered probes
    /// the connection is dead.
    private static func keepingAlive(_ bootstrap: ClientBootstrap) -> ClientBootstrap {
        #if os(Linux)
            let idle = NIOBSDSocket.Option(rawValue: TCP_KEEPIDLE)
        #else
            let idle = NIOBSDSocket.Option(rawValue: TCP_KEEPALIVE)
        #endif
        return
            bootstrap
            .channelOption(.socketOption(.so_keepalive), value: 1)
            .channelOption(.tcpOption(idle), value: 15)
            .channelOption(.tcpOption(.init(rawValue: TCP_KEEPINTVL)), value: 5)
            .channelOption(.tcpOption(.init(rawValue: TCP_KEEPCNT)), value: 3)
    }
}

/// Names the server for each new connection.
protocol EndpointSource: Sendable {
    /// The functions that keep what the source knows, each until its task is cancelled.
    var tasks: [@Sendable () async -> Void] { get }
    /// Whether the server must be a master: see ``LoginSteps`` and ``ConnectionHandler``.
    var requiresMaster: Bool { get }
    /// Returns the address to connect to now.
    func endpoint() async throws(RedisError) -> RedisConfiguration.Endpoint
    /// Closes the connection when its server must not be used any more.
    ///
    /// - Throws: `.cannotConnect` if that is so already. The connection is then closed.
    func watch(_ connection: RedisConnection) throws(RedisError)
}
