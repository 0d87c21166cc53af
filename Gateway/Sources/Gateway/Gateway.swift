public import Hiredis
public import Hummingbird
public import Logging
public import QueueListen
public import RedisDC
import Crypto
import HTTPTypes

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
    let coordinator: Coordinator
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
        self.coordinator = coordinator
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

    // MARK: Routes

    typealias Call = @Sendable (Request, _ address: String?) async throws -> Response

    /// Adds the calls of docs/http.md to a router.
    ///
    /// If the context is a `RemoteAddressRequestContext`, logins are limited by address too.
    public func addRoutes<Context: RequestContext>(to router: Router<Context>) {
        let calls: [(path: RouterPath, calls: [(method: HTTPRequest.Method, call: Call)])] = [
            ("/v1/sessions", [(.post, login), (.delete, logout)]),
            ("/v1/mail", [(.get, mail)]),
            ("/v1/ack", [(.post, acknowledge)]),
            ("/v1/send", [(.post, send)]),
            ("/v1/events", [(.get, events)]),
            ("/v1/socket", [(.get, refusedSocket)]),
        ]
        for (path, calls) in calls { add(calls, path, to: router) }
        for method in Self.methods {
            add(
                { _, _ in throw Problem(.notFound, "there is no such call: see docs/http.md") }, "/v1/**", method,
                to: router)
        }
    }

    /// The methods that get a problem as their reply where there is no such call: all that the parser of requests knows,
    /// by its names, except CONNECT and OPTIONS.
    private static let methods: [HTTPRequest.Method] = [
        "GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "TRACE", "ACL", "BIND", "CHECKOUT", "COPY", "LINK", "LOCK",
        "MSEARCH", "MERGE", "MKACTIVITY", "MKCALENDAR", "MKCOL",
        "MOVE", "NOTIFY", "PROPFIND", "PROPPATCH", "PURGE", "REBIND", "REPORT", "SEARCH", "SOURCE", "SUBSCRIBE",
        "UNBIND", "UNLINK", "UNLOCK", "UNSUBSCRIBE",
    ].compactMap { HTTPRequest.Method($0) }

    /// Adds the methods of a path; others are refused.
    func add<Context: RequestContext>(
        _ calls: [(method: HTTPRequest.Method, call: Call)], _ path: RouterPath, to router: Router<Context>
    ) {
        for (method, call) in calls { add(call, path, method, to: router) }
        let methods = calls.map(\.method.rawValue)
        let allowed = methods.joined(separator: ", ")
        for method in Self.methods where !calls.contains(where: { $0.method == method }) {
            add(
                { _, _ in
                    var problem = Problem(.methodNotAllowed, "the call has the methods \(allowed)")
                    problem.headers[.allow] = allowed
                    throw problem
                }, path, method, to: router)
        }
        router.on(path, method: .options) { request, _ in self.preflight(request, methods) }
    }

    private func add<Context: RequestContext>(
        _ call: @escaping Call, _ path: RouterPath, _ method: HTTPRequest.Method, to router: Router<Context>
    ) {
        router.on(path, method: method) { request, context in
            let forwarded =
                self.configuration.trustsForwardedFor
                ? request.headers[.xForwardedFor]?.split(separator: ",").last.map { $0.trimmed } : nil
            let address = forwarded ?? (context as? any RemoteAddressRequestContext)?.remoteAddress?.ipAddress
            return await self.answer(request, address, call)
        }
    }

    private func answer(_ request: Request, _ address: String?, _ call: @escaping Call) async -> Response {
        var response: Response
        do {
            // The memory of a child task is free when it ends. The connection's task would keep it as long as it lasts.
            async let reply = call(request, address)
            response = try await reply
        } catch let problem as Problem {
            response = problem.response
        } catch {
            logger.error("a call failed", metadata: ["path": "\(request.uri.path)", "error": "\(error)"])
            response = Problem(.internal, "an internal error").response
        }
        addOriginHeaders(to: &response, for: request)
        return response
    }

    // MARK: Signed requests

    /// Reads the body of a request.
    ///
    /// - Throws: `too-large`, before the body has arrived if its length is announced; `malformed`.
    func body(of request: Request, maxBytes: Int) async throws -> [UInt8] {
        let tooLarge = Problem(.tooLarge, "the body has more than \(maxBytes) bytes")
        if let length = request.headers[.contentLength].flatMap({ Int($0) }), length > maxBytes { throw tooLarge }
        func read(_ count: (Int) -> Void) async throws -> [UInt8] {
            var bytes: [UInt8] = []
            do {
                for try await buffer in request.body {
                    guard bytes.count + buffer.readableBytes <= maxBytes else { throw tooLarge }
                    count(buffer.readableBytes)
                    bytes += buffer.readableBytesView
                }
            } catch let problem as Problem { throw problem } catch {
                // Whatever ends a body before its end is the client's fault: chunks or trailers that are none, or its leaving.
                throw Problem(.malformed, "the body broke off, or is not well-formed")
            }
            return bytes
        }
        guard let channel = ClientConnection.current?.channel else { return try await read { _ in } }
        return try await bodies.receive(from: channel, read)
    }

    /// Reads the body of a request, which must be a JSON object.
    static func object(_ body: [UInt8], of request: Request) throws(Problem) -> JSON {
        let type = request.headers[.contentType]?.split(separator: ";").first.map { $0.trimmed.lowercased() }
        guard type == "application/json" else {
            throw Problem(.contentType, "the request needs the header Content-Type: application/json")
        }
        return try object(body)
    }

    static func object(_ text: [UInt8]) throws(Problem) -> JSON {
        let json: JSON
        do { json = try JSONParser.parse(text) } catch { throw Problem(.malformed, "not JSON: \(error)") }
        guard json.members != nil else { throw Problem(.malformed, "not a JSON object") }
        return json
    }

    /// Reads a signed request's body, and verifies the signature.
    ///
    /// The signature covers the body. So that nobody else makes the node hold one, the session must exist and the time be
    /// current before it is read.
    ///
    /// - Parameter isLogout: whether the session may be one that a logout has ended a short time ago.
    func verified(_ request: Request, isLogout: Bool = false) async throws -> (Session, body: [UInt8]) {
        guard let signature = Signature(request.headers) else {
            throw Problem.unauthorized(
                .unsigned, "the headers X-Session, X-Time, X-Nonce and X-Signature are missing, or have the wrong form",
                time: try await sessions.time())
        }
        let claim = try await sessions.claim(signature, isLogout: isLogout)
        let body = try await body(of: request, maxBytes: configuration.maxBodyBytes)
        let session = try await sessions.verify(
            claim, method: request.method.rawValue, target: request.head.path ?? "", body: body, isLogout: isLogout,
            within: limitRequests(of:))
        return (session, body)
    }

    // MARK: Limits

    func limitRequests(of session: Session) async throws(Problem) {
        guard let rate = configuration.requestsPerSecond else { return }
        try await limit("gateway:session:\(session.id)", rate, per: .seconds(1), burst: 2 * rate)
    }

    /// Counts an action, and refuses it beyond the limit of all nodes together.
    func limit(_ name: String, _ rate: Int, per period: Duration, burst: Int) async throws(Problem) {
        let decision: RateLimiter.Decision
        do throws(RedisDCError) {
            decision = try await coordinator.rateLimiter(name, rate: rate, per: period, burst: burst).tryAcquire()
        } catch {
            var error = error
            error.mayHaveRun = false
            throw Problem(error)
        }
        guard decision.isAllowed else { throw .tooManyRequests(retryAfter: decision.retryAfter) }
    }
}

extension StringProtocol {
    /// The text without white space at its ends.
    var trimmed: String {
        String(drop { $0.isWhitespace }.reversed().drop { $0.isWhitespace }.reversed())
    }
}

extension HTTPField.Name {
    static let xForwardedFor = HTTPField.Name("X-Forwarded-For")!
}
