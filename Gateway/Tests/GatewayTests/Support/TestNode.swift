import HTTPTypes
import Hiredis
import Hummingbird
import Logging
import NIOConcurrencyHelpers
import NIOCore
import QueueListen
import RedisDC
import RedisDCTesting
import ServiceLifecycle
import Testing

@testable import Gateway

/// A node of the gateway in this process: with a client, a post office and a port of its own, as a process would have.
struct TestNode: Sendable {
    let gateway: Gateway
    let office: PostOffice
    let redis: RedisClient
    let port: Int
    let services: ServiceGroup
    let log: TestLog

    var url: String { "http://127.0.0.1:\(port)" }

    /// The context of requests.
    struct Context: RequestContext, RemoteAddressRequestContext {
        var coreContext: CoreRequestContextStorage
        let remoteAddress: SocketAddress?

        init(source: ApplicationRequestContextSource) {
            coreContext = .init(source: source)
            remoteAddress = source.channel.remoteAddress
        }
    }
}

/// Accepts the credential "secret of USER".
struct TestAuthenticator: Authenticator {
    func authenticate(_ login: Login) async throws -> Bool { login.credentialText == "secret of \(login.user)" }
}

/// Collects what a node logs, at every level.
struct TestLog: Sendable {
    private let lines = NIOLockedValueBox<[String]>([])
    var text: String { lines.withLockedValue { $0.joined(separator: "\n") } }

    var logger: Logger {
        var logger = Logger(label: "test") { _ in Handler(log: self) }
        logger.logLevel = .trace
        return logger
    }

    private struct Handler: LogHandler {
        let log: TestLog
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.trace
        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }
        func log(event: LogEvent) {
            let all = metadata.merging(event.metadata ?? [:]) { $1 }
            log.lines.withLockedValue { $0.append("\(event.level) \(event.message) \(all)") }
        }
    }
}

/// The settings that the nodes of a test have in common.
private struct NodeSettings: Sendable {
    var gateway = GatewayConfiguration()
    var office = PostOfficeConfiguration()
    var authorize: SendAuthorization
    var whileListening: (@Sendable (Caller) async -> Void)?
    var hasGatewayServer: Bool
    var addCalls: @Sendable (Gateway, Router<TestNode.Context>) -> Void
}

/// Runs nodes of the gateway on a private Redis server.
///
/// - Parameters:
///   - url: the address of Redis, if the nodes do not connect directly.
///   - authorize: by default everyone may send to everyone.
///   - hasGatewayServer: whether the server is ``Gateway/server()``, or one of Hummingbird.
///   - addCalls: adds calls of an application, and middleware for all calls.
func withNodes(
    _ count: Int = 1, on server: LocalRedis? = nil, url: String? = nil,
    configure: (inout GatewayConfiguration) -> Void = { _ in },
    office: (inout PostOfficeConfiguration) -> Void = { _ in },
    authorize: @escaping SendAuthorization = { _ in true },
    whileListening: (@Sendable (Caller) async -> Void)? = nil, hasGatewayServer: Bool = true,
    addCalls: @escaping @Sendable (Gateway, Router<TestNode.Context>) -> Void = { _, _ in },
    _ body: @escaping @Sendable ([TestNode], LocalRedis) async throws -> Void
) async throws {
    var settings = NodeSettings(
        authorize: authorize, whileListening: whileListening, hasGatewayServer: hasGatewayServer, addCalls: addCalls)
    settings.gateway.isSecure = false
    settings.gateway.requestsPerSecond = nil
    settings.gateway.maxFramesPerSecond = nil
    settings.gateway.maxConnectionsOfAddress = nil
    settings.gateway.loginsOfUserPerMinute = 1000
    settings.gateway.loginsFromAddressPerMinute = 10_000
    configure(&settings.gateway)
    office(&settings.office)
    if let server {
        return try await run(count, url ?? server.url, settings) { try await body($0, server) }
    }
    try await withLocalRedis { [settings] server in
        try await run(count, url ?? server.url, settings) { try await body($0, server) }
    }
}

private func run(
    _ count: Int, _ url: String, _ settings: NodeSettings, _ body: @escaping @Sendable ([TestNode]) async throws -> Void
) async throws {
    var (nodes, runs): ([TestNode], [Task<Void, any Error>]) = ([], [])
    for _ in 0..<count {
        let (node, run) = try await makeNode(url, settings)
        runs.append(Task { try await run() })
        nodes.append(try await node())
    }
    let result: Result<Void, any Error>
    do { result = .success(try await body(nodes)) } catch { result = .failure(error) }
    for node in nodes { await node.services.triggerGracefulShutdown() }
    for run in runs { try await run.value }
    try result.get()
}

private func makeNode(
    _ url: String, _ settings: NodeSettings
) async throws -> (@Sendable () async throws -> TestNode, @Sendable () async throws -> Void) {
    let log = TestLog()
    let redis = try RedisClient(url: url)
    let office = try PostOffice(redis: redis, configuration: settings.office)
    let gateway = Gateway(
        redis: redis, office: office, coordinator: try Coordinator(redis: redis), authenticator: TestAuthenticator(),
        authorize: settings.authorize, whileListening: settings.whileListening, configuration: settings.gateway,
        logger: log.logger)
    let router = Router(context: TestNode.Context.self)
    router.add(middleware: LogRequestsMiddleware(.debug, includeHeaders: .all(), redactHeaders: [.cookie]))
    settings.addCalls(gateway, router)
    gateway.addRoutes(to: router)
    let (ports, continuation) = AsyncStream<Int>.makeStream()
    let application = Application(
        router: router, server: settings.hasGatewayServer ? gateway.server() : .plain,
        configuration: ApplicationConfiguration(address: .hostname("127.0.0.1", port: 0)),
        onServerRunning: { continuation.yield($0.localAddress?.port ?? 0) }, logger: log.logger)
    let services = ServiceGroup(services: [redis, office, gateway, application], logger: log.logger)
    let node: @Sendable () async throws -> TestNode = {
        for await port in ports {
            return TestNode(
                gateway: gateway, office: office, redis: redis, port: port, services: services, log: log)
        }
        throw CancellationError()
    }
    // Without a port there is no node: then it does not wait for one.
    return (
        node,
        {
            defer { continuation.finish() }
            try await services.run()
        }
    )
}

extension LocalRedis {
    /// Forgets all rate limits.
    func removeLimits() async throws {
        try await withRedisClient(url: url) { redis in
            for key in try await redis.send("KEYS", "*gateway:*").array ?? [] {
                _ = try await redis.send("DEL", .string(key.string ?? ""))
            }
        }
    }
}
