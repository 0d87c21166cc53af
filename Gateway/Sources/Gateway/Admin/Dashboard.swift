public import Hiredis
public import Hummingbird
public import Logging
import NIOCore
public import QueueListen
public import RedisDC

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
        let admin = router.group("/admin", context: DashboardContext<Context>.self)
            .add(middleware: DashboardHeadersMiddleware())
            .add(middleware: ProblemMiddleware(logger: logger))
        admin.get { _, _ in Self.file(PackageResources.index_html, "text/html; charset=utf-8") }
        admin.get("admin.css") { _, _ in Self.file(PackageResources.admin_css, "text/css; charset=utf-8") }
        admin.get("admin.js") { _, _ in Self.file(PackageResources.admin_js, "text/javascript; charset=utf-8") }
        admin.post("login", use: login)

        let operators = admin.group().add(middleware: OperatorMiddleware(logins: logins))
        let reads = operators.group(context: OperatorContext<Context>.self)
        reads.get("session", use: session)
        reads.get("events", use: events)
        let changes = operators.group().add(middleware: ChangeMiddleware(logins: logins))
            .group(context: OperatorContext<Context>.self)
        changes.post("logout", use: logout)
        changes.post("announce", use: announce)
        changes.post("confirm", use: confirm)
    }

    private static func file(_ bytes: [UInt8], _ type: String) -> Response {
        Response(status: .ok, headers: [.contentType: type], body: .init(byteBuffer: ByteBuffer(bytes: bytes)))
    }
}
