public import AsyncHTTPClient
import Synchronization

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A user's device at a RedisDC gateway: sends messages and reads the user's mailbox.
///
/// ```swift
/// let client = try await GatewayClient.login(
///     to: ["https://a.chat.example", "https://b.chat.example"], user: "alice", device: "phone", credential: jwt)
/// try await client.send(OutgoingMessage(text: "hello"), to: ["bob"])
/// for try await event in client.messages() {
///     switch event {
///     case .message(let message):
///         try await show(message)
///         try await client.acknowledge(message.cursor)
///     case .gap: try await reloadState()
///     case .superseded: break
///     }
/// }
/// ```
///
/// The interface below it is docs/http.md.
///
/// **Guarantees**
/// - A message stays in the mailbox until its cursor, or a later one, was acknowledged. Reading
///   acknowledges nothing.
/// - Messages come in order and each once, whatever happens to connections and nodes in between. A
///   loss in Redis is reported as ``GatewayEvent/gap(_:)``.
/// - A send is repeated under its id until its reply has arrived, so it has one effect.
/// - The token of the session is never sent. It is in no description and no error.
///
/// **Limits**
/// - Duplicates are recognized among the last 4,096 messages of an iteration.
/// - A device has one reader: a newer one, at whichever node, ends the older one.
public final class GatewayClient: Sendable {
    /// The session. Keep it to continue after a restart of the program.
    public let session: GatewaySession
    /// The times of the client.
    public let configuration: GatewayClientConfiguration
    let nodes: NodeList
    let environment: ClientEnvironment
    let exchange: HTTPExchange
    private let signer: RequestSigner
    private let state: Mutex<State>

    private struct State {
        /// The server's time minus the local one, in milliseconds.
        var clockOffset: Int
        /// Why the session is known to have ended.
        var end: GatewayError?
    }

    /// Creates a client that continues a session. Nothing is sent.
    ///
    /// - Parameters:
    ///   - urls: the gateway's nodes, such as `https://chat.example`. When one fails, the next one is
    ///     used.
    ///   - session: from an earlier ``login(to:user:device:credential:configuration:http:timeout:)``.
    ///   - http: a client for particular TLS settings or proxies. It should follow no redirects, and
    ///     allow a connection for each reader.
    /// - Throws: `.invalidArgument`.
    public convenience init(
        urls: [String], session: GatewaySession, configuration: GatewayClientConfiguration = .init(),
        http: HTTPClient? = nil
    ) throws(GatewayError) {
        let nodes = try NodeList(urls, first: .random(in: 0..<max(1, urls.count)))
        self.init(
            nodes: nodes, session: session, configuration: configuration,
            exchange: HTTPExchange(http: http ?? HTTPExchange.sharedHTTP), environment: .system)
    }

    init(
        nodes: NodeList, session: GatewaySession, configuration: GatewayClientConfiguration, exchange: HTTPExchange,
        environment: ClientEnvironment, clockOffset: Int = 0
    ) {
        self.session = session
        self.configuration = configuration
        self.nodes = nodes
        self.environment = environment
        self.exchange = exchange
        signer = RequestSigner(session: session.id, token: session.token)
        state = Mutex(State(clockOffset: clockOffset))
    }

    /// Logs in. An older session of the same user and device ends.
    ///
    /// - Parameters:
    ///   - urls: as for ``init(urls:session:configuration:http:)``.
    ///   - user: 1 to 512 bytes without control characters and braces.
    ///   - device: 1 to 128 bytes without control characters and braces. Each installation of a
    ///     program needs a device of its own.
    ///   - credential: what the gateway's authenticator expects, encoded as JSON: for the stand-alone
    ///     gateway the text of a JSON Web Token.
    ///   - timeout: the maximum time with all attempts. Default:
    ///     ``GatewayClientConfiguration/callTimeout``.
    /// - Throws: `.badCredential`, `.malformed`, `.tooManyRequests`, `.unavailable`, `.network`,
    ///   `.unexpectedReply`, `.invalidArgument`, `.invalidContent`, `.cancelled`.
    public static func login(
        to urls: [String], user: String, device: String, credential: some Encodable & Sendable,
        configuration: GatewayClientConfiguration = .init(), http: HTTPClient? = nil, timeout: Duration? = nil
    ) async throws(GatewayError) -> GatewayClient {
        let nodes = try NodeList(urls, first: .random(in: 0..<max(1, urls.count)))
        return try await login(
            nodes, user: user, device: device, credential: credential, configuration: configuration,
            exchange: HTTPExchange(http: http ?? HTTPExchange.sharedHTTP), environment: .system, timeout: timeout)
    }

    static func login(
        _ nodes: NodeList, user: String, device: String, credential: some Encodable & Sendable,
        configuration: GatewayClientConfiguration, exchange: HTTPExchange, environment: ClientEnvironment,
        timeout: Duration? = nil
    ) async throws(GatewayError) -> GatewayClient {
        let text: [UInt8]
        do { text = Array(try JSONEncoder().encode(credential)) } catch {
            throw GatewayError(.invalidContent, "the credential cannot be encoded", underlying: error)
        }
        let call = LoginCall(user: user, device: device, credential: text)
        let retrying = Retrying(nodes: nodes, configuration: configuration, environment: environment)
        let (reply, offset) = try await retrying.run(timeout: timeout) { node, limit throws(GatewayError) in
            let begin = environment.now()
            let response = try await exchange.open(
                node + call.target, method: call.method, headers: [("Content-Type", "application/json")],
                body: call.body, within: limit)
            let reply = try call.reply(try await exchange.collect(response, within: limit))
            // The reply is about as long under way as the request was.
            return (reply, reply.time - (begin + environment.now()) / 2)
        }
        let session = GatewaySession(
            id: reply.session, user: user, device: device, token: reply.token, expires: reply.expires,
            cursor: reply.cursor)
        return GatewayClient(
            nodes: nodes, session: session, configuration: configuration, exchange: exchange,
            environment: environment, clockOffset: offset)
    }

    // MARK: Signed requests

    /// Sends a signed request, and signs it once more if the clock was wrong or the nonce used.
    ///
    /// - Returns: a successful reply, whose body has not been read.
    func open(
        _ method: String, _ target: String, body: [UInt8] = [], accept: String? = nil, at node: String,
        within limit: Duration
    ) async throws(GatewayError) -> HTTPClientResponse {
        var corrected: Set<GatewayError.Code> = []
        while true {
            let offset = try usableClockOffset()
            let time = environment.now() + offset
            let nonce = RequestSigner.randomText()
            let signature = signer.signature(method: method, target: target, time: time, nonce: nonce, body: body)
            var headers = [
                ("X-Session", session.id), ("X-Time", "\(time)"), ("X-Nonce", nonce), ("X-Signature", signature),
            ]
            if !body.isEmpty { headers.append(("Content-Type", "application/json")) }
            if let accept { headers.append(("Accept", accept)) }
            do throws(GatewayError) {
                return try await exchange.open(
                    node + target, method: method, headers: headers, body: body, within: limit)
            } catch {
                note(error)
                guard error.code == .stale && error.time != nil || error.code == .nonceUsed,
                    corrected.insert(error.code).inserted
                else { throw error }
                if let time = error.time, error.code == .stale {
                    state.withLock { $0.clockOffset = time - environment.now() }
                }
            }
        }
    }

    /// - Throws: the error that has ended the session.
    private func usableClockOffset() throws(GatewayError) -> Int {
        let (offset, end) = state.withLock { ($0.clockOffset, $0.end) }
        if let end { throw end }
        return offset
    }

    /// Takes note of an error that ends the session.
    func note(_ error: GatewayError) {
        guard error.endsSession else { return }
        state.withLock { $0.end = $0.end ?? error }
    }
}
