public import Hiredis
import Hummingbird
public import Logging
public import QueueListen
public import RedisDC

/// Mailboxes over HTTP, server-sent events and WebSocket, to be mounted in a Hummingbird
/// application.
///
/// ```swift
/// let gateway = Gateway(
///     redis: redis, office: office, coordinator: coordinator, authenticator: MyUsers(),
///     authorize: { attempt in await mayChat(attempt.sender, attempt.recipients) })
/// let router = Router()
/// gateway.addRoutes(to: router)
/// let application = Application(
///     router: router, server: gateway.server(), services: [redis, office, gateway])
/// ```
///
/// The routes are those of docs/http.md, below `/v1`. ``server()`` adds the upgrade of
/// `/v1/socket`, and ends a poll or event stream whose client has gone. ``run()`` ends streams of sessions that end
/// at other nodes.
///
/// **Guarantees**
/// - Any node answers any request: sessions, nonces, limits and messages are in Redis. A node that
///   dies loses nothing; its clients resume at another one.
/// - Reading never acknowledges.
/// - A session's token is in the reply to the login and nowhere else: in no log line, URL or later
///   reply.
/// - A graceful shutdown of the task that handles a stream ends it with an event that tells the
///   client when to reconnect.
///
/// **Limits**
/// - The signature covers the path as the client sent it: mount the routes at the root, and no proxy
///   may change the path.
public final class Gateway: Sendable {
    let office: PostOffice
    let sessions: Sessions
    let limits: RequestLimits
    let origins: Origins
    let authenticator: any Authenticator
    let authorize: SendAuthorization
    let whileListening: (@Sendable (Caller) async -> Void)?
    /// The settings.
    public let configuration: GatewayConfiguration
    let streams: OpenStreams
    let polls: OpenStreams
    let connections: Connections
    let bodies: BodiesInFlight
    let watch = SessionWatch()
    let logger: Logger

    /// Creates a gateway. Nothing is sent.
    ///
    /// - Parameters:
    ///   - redis: the client, which must be running. Sessions are below `gw:{NAMESPACE:`.
    ///   - office: the post office whose mailboxes the gateway serves. Its `limits.deviceTTL` is the
    ///     time after which the device of an expired session is forgotten.
    ///   - coordinator: for the rate limits. It need not be running.
    ///   - authenticator: decides who may log in.
    ///   - authorize: decides who may send to whom. The default denies every send.
    ///   - whileListening: runs beside each event stream, socket and waiting poll of a device at this
    ///     node, for presence for example. Its task is cancelled when that ends; it must then return
    ///     soon, because the end waits for it.
    ///   - configuration: the settings.
    ///   - logger: for failures of the application's functions. Never receives secrets.
    public init(
        redis: any Redis, office: PostOffice, coordinator: Coordinator, authenticator: any Authenticator,
        authorize: @escaping SendAuthorization = { _ in false },
        whileListening: (@Sendable (Caller) async -> Void)? = nil, configuration: GatewayConfiguration = .init(),
        logger: Logger = Logger(label: "redisdc-gateway")
    ) {
        self.office = office
        limits = RequestLimits(coordinator: coordinator, configuration: configuration)
        origins = Origins(allowed: configuration.allowedOrigins)
        self.authenticator = authenticator
        self.authorize = authorize
        self.whileListening = whileListening
        self.configuration = configuration
        self.logger = logger
        sessions = Sessions(redis: redis, namespace: office.namespace)
        streams = OpenStreams(.streams, maxOfSession: configuration.maxStreamsOfSession)
        polls = OpenStreams(.polls, maxOfSession: configuration.maxPollsOfSession)
        connections = Connections(
            max: configuration.maxConnections,
            maxOfAddress: configuration.trustsForwardedFor ? nil : configuration.maxConnectionsOfAddress)
        bodies = BodiesInFlight(maxBytes: max(configuration.maxBodyBytesInFlight, configuration.maxBodyBytes))
    }

    /// The number of event streams and sockets that are open at this node.
    public var openStreams: Int { streams.count }

    /// The number of connections to this node's ``server()``.
    public var openConnections: Int { connections.count }

    /// The number of bytes that this node holds of bodies that are still arriving.
    public var bodyBytesInFlight: Int { bodies.bytes }
}
