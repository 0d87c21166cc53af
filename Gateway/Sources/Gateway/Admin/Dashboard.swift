public import Hiredis
public import Hummingbird
public import Logging
public import QueueListen
public import RedisDC
import HTTPTypes
import NIOCore
import ServiceLifecycle

/// The operators' page: what is held and waited for, deadlocks, mailboxes and dead letters, live; with
/// forced releases and the requeue of dead letters behind a confirmation.
///
/// ```swift
/// let dashboard = Dashboard(key: key, redis: redis, office: office, coordinator: coordinator)
/// dashboard.addRoutes(to: operations)  // a router of its own, on an address that only operators reach
/// ```
///
/// **Guarantees**
/// - Without the key nothing is shown. Attempts are limited, and the key is compared in constant
///   time.
/// - Each change needs the session's cookie, its CSRF token, and the confirmation of that very change,
///   which is valid once and for a minute.
/// - No content of a message leaves the server.
/// - A refresh has a maximum cost, all open pages share it, and there is none without an open page.
///
/// **Limits**
/// - An operator is logged in at one node, until that node restarts or for 12 hours.
/// - The first 200 resources and 50 mailboxes are shown, those with the longest waits first.
public final class Dashboard: Sendable {
    static let cookieName = "redisdc-admin"
    static let csrfHeader = HTTPField.Name("X-CSRF-Token")!

    let logins: DashboardLogins
    let reader: DashboardReader
    let office: PostOffice
    let coordinator: Coordinator
    let interval: Duration
    let logger: Logger

    /// The minimum length of a key in bytes.
    public static let minKeyBytes = 16

    /// Creates a dashboard. Nothing is read.
    ///
    /// - Parameters:
    ///   - key: the secret with which operators log in, at least ``minKeyBytes``.
    ///   - redis: the client, which must be running. It finds the mailboxes.
    ///   - office: the post office whose mailboxes are shown.
    ///   - coordinator: the coordinator of the namespace that is shown. It must be running: a forced
    ///     release needs a session.
    ///   - deadLetterMailboxes: the names of the mailboxes that contain dead letters.
    ///   - interval: the time between two refreshes.
    ///   - logger: for changes and failed logins. Never receives the key.
    public convenience init(
        key: String, redis: RedisClient, office: PostOffice, coordinator: Coordinator,
        deadLetterMailboxes: [String] = [], interval: Duration = .seconds(2),
        logger: Logger = Logger(label: "redisdc-gateway")
    ) {
        self.init(
            logins: DashboardLogins(key: key), redis: redis, office: office, coordinator: coordinator,
            deadLetterMailboxes: deadLetterMailboxes, interval: interval, logger: logger)
    }

    init(
        logins: DashboardLogins, redis: RedisClient, office: PostOffice, coordinator: Coordinator,
        deadLetterMailboxes: [String], interval: Duration, logger: Logger
    ) {
        self.logins = logins
        self.office = office
        self.coordinator = coordinator
        self.interval = interval
        self.logger = logger
        reader = DashboardReader(
            redis: redis, office: office, coordinator: coordinator, deadLetterMailboxes: deadLetterMailboxes,
            interval: interval)
    }

    // MARK: Routes

    /// Adds the page and its calls below `/admin` to a router.
    public func addRoutes<Context: RequestContext>(to router: Router<Context>) {
        func add(
            _ method: HTTPRequest.Method, _ path: RouterPath,
            _ call: @escaping @Sendable (Request) async throws -> Response
        ) {
            router.on(path, method: method) { request, _ in await self.answer(request, call) }
        }
        add(.get, "/admin") { _ in Self.file(PackageResources.index_html, "text/html; charset=utf-8") }
        add(.get, "/admin/admin.css") { _ in Self.file(PackageResources.admin_css, "text/css; charset=utf-8") }
        add(.get, "/admin/admin.js") { _ in Self.file(PackageResources.admin_js, "text/javascript; charset=utf-8") }
        add(.post, "/admin/login", login)
        add(.get, "/admin/session") { request in
            Response(.ok, ["csrf": .string(try self.session(of: request).csrfToken)])
        }
        add(.get, "/admin/events", events)
        add(.post, "/admin/logout") { request in
            self.logins.logOut(try await self.change(request).session)
            var response = Response.noContent
            response.headers[.setCookie] = Self.cookie("", maxAge: 0)
            return response
        }
        add(.post, "/admin/announce", announce)
        add(.post, "/admin/confirm", confirm)
    }

    private func answer(_ request: Request, _ call: (Request) async throws -> Response) async -> Response {
        var response: Response
        do { response = try await call(request) } catch let problem as Problem {
            response = problem.response
        } catch let error as RedisDCError {
            response = Problem(error).response
        } catch let error as QueueListenError {
            response = Problem(error).response
        } catch {
            logger.error("a call of the dashboard failed", metadata: ["error": "\(error)"])
            response = Problem(.internal, "an internal error").response
        }
        for (name, value) in Self.headers { response.headers[HTTPField.Name(name)!] = value }
        return response
    }

    /// The page loads its own script and style and nothing else, and cannot be framed.
    static let headers = [
        "Content-Security-Policy":
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; "
            + "form-action 'none'; frame-ancestors 'none'",
        "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
        "Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
        "Cache-Control": "no-store",
    ]

    private static func file(_ bytes: [UInt8], _ type: String) -> Response {
        Response(status: .ok, headers: [.contentType: type], body: .init(byteBuffer: ByteBuffer(bytes: bytes)))
    }

    // MARK: Login

    private func login(_ request: Request) async throws -> Response {
        let json = try await object(request)
        guard let key = json["key"]?.string else { throw Problem(.malformed, "a login has the field key") }
        switch logins.logIn(key: key) {
        case .accepted(let cookie):
            var response = Response.noContent
            response.headers[.setCookie] = Self.cookie(
                cookie, maxAge: Int(DashboardLogins.lifetime.nanoseconds / 1_000_000_000))
            return response
        case .wrongKey:
            logger.warning("a login at the dashboard with a wrong key")
            throw Problem(.badCredential, "the key is wrong")
        case .limited(let time): throw Problem.tooManyRequests(retryAfter: .nanoseconds(time.nanoseconds))
        }
    }

    private static func cookie(_ value: String, maxAge: Int) -> String {
        "\(cookieName)=\(value); Path=/admin; Max-Age=\(maxAge); HttpOnly; SameSite=Strict"
    }

    private func session(of request: Request) throws(Problem) -> DashboardLogins.Session {
        guard let cookie = request.cookies[Self.cookieName], let session = logins.session(cookie: cookie.value) else {
            throw Problem(.cookie, "log in with the key")
        }
        return session
    }

    /// Reads a JSON object that a page of this address has posted.
    private func object(_ request: Request) async throws -> JSON {
        if let site = request.headers[HTTPField.Name("Sec-Fetch-Site")!], site != "same-origin" {
            throw Problem(.origin, "the request comes from another site")
        }
        let body: ByteBuffer
        do { body = try await request.body.collect(upTo: 16 * 1024) } catch is NIOTooManyBytesError {
            throw Problem(.tooLarge, "a call of the dashboard has at most 16 KiB")
        } catch { throw Problem(.malformed, "the body broke off, or is not well-formed") }
        return try Gateway.object(Array(body.readableBytesView), of: request)
    }

    /// Checks that a request may change something.
    private func change(_ request: Request) async throws -> (session: DashboardLogins.Session, json: JSON) {
        let session = try session(of: request)
        let json = try await object(request)
        guard let token = request.headers[Self.csrfHeader], logins.isValid(csrfToken: token, of: session) else {
            throw Problem(.forbidden, "the request has no valid CSRF token")
        }
        return (session, json)
    }

    // MARK: Changes

    private func announce(_ request: Request) async throws -> Response {
        let (session, json) = try await change(request)
        guard let action = DashboardAction(json) else { throw Problem(.malformed, "there is no such action") }
        return Response(
            .ok,
            [
                "question": .string(action.question), "confirmation": .string(logins.announce(action, session)),
            ])
    }

    private func confirm(_ request: Request) async throws -> Response {
        let (session, json) = try await change(request)
        guard let token = json["confirmation"]?.string, let action = logins.confirmed(token: token, session) else {
            throw Problem(.forbidden, "the confirmation is unknown, was used, or has expired: begin again")
        }
        let count: Int
        switch action {
        case .release(let resource, let holder):
            count = try await coordinator.forceRelease(resource, holder: holder)
            logger.notice(
                "an operator has released a resource",
                metadata: ["resource": "\(resource)", "holder": "\(holder ?? "all")", "released": "\(count)"])
        case .requeue(let mailbox, let limit):
            do { count = try await DeadLetters(try office.mailbox(mailbox)).requeue(limit, office) } catch let foreign
                as DeadLetters.ForeignMessage
            {
                throw Problem(
                    .refused,
                    "message \(foreign.index) of \(mailbox) is no dead letter: read it with `redisdc mail peek "
                        + "\(mailbox)`, then acknowledge it with the device \(DeadLetters.device)")
            }
            logger.notice(
                "an operator has requeued dead letters", metadata: ["mailbox": "\(mailbox)", "count": "\(count)"])
        }
        await reader.forget()
        return Response(.ok, ["count": JSON(count)])
    }

    // MARK: Events

    private func events(_ request: Request) async throws -> Response {
        let cookie = request.cookies[Self.cookieName]?.value ?? ""
        _ = try session(of: request)
        return Response(
            status: .ok, headers: [.contentType: "text/event-stream"],
            body: ResponseBody { writer in
                try await ClientConnection.cancelling { cancel in
                    try await withGracefulShutdownHandler {
                        while self.logins.session(cookie: cookie) != nil {
                            var text = ByteBuffer(string: "event: snapshot\ndata: ")
                            text.writeBytes(await self.reader.snapshot())
                            text.writeString("\n\n")
                            try await writer.write(text)
                            try await Task.sleep(for: self.interval)
                        }
                        // The session has ended: the page asks for the key.
                        try await writer.write(ByteBuffer(string: "event: expired\ndata:\n\n"))
                    } onGracefulShutdown: {
                        cancel()
                    }
                }
                try await writer.finish(nil)
            })
    }
}
