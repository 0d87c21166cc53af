import Configuration
import Foundation
import Gateway
import HTTPTypes
import Hiredis
import Hummingbird
import HummingbirdCore
import HummingbirdTLS
import Logging
import Metrics
import NIOCore
import NIOSSL
import QueueListen
import RedisDC
import ServiceLifecycle
import UnixSignals

/// The stand-alone gateway: one node, configured by flags and the environment.
@main
struct GatewayProgram {
    static func main() async {
        let arguments = CommandLine.arguments
        if arguments.contains("--help") || arguments.contains("-h") {
            print(Settings.usage)
            return
        }
        do {
            try Settings.check(arguments)
            let reader = ConfigReader(providers: [
                CommandLineArgumentsProvider(arguments: arguments), EnvironmentVariablesProvider(),
            ])
            try await run(try Settings(reader))
        } catch {
            FileHandle.standardError.write(Data("redisdc-gateway: \(error)\n".utf8))
            exit(1)
        }
    }

    /// The context of requests, which knows the client's address.
    struct Context: RequestContext, RemoteAddressRequestContext {
        var coreContext: CoreRequestContextStorage
        let remoteAddress: SocketAddress?

        init(source: ApplicationRequestContextSource) {
            coreContext = .init(source: source)
            remoteAddress = source.channel.remoteAddress
        }
    }

    private static func run(_ settings: Settings) async throws {
        // The level of all loggers, also those of the libraries.
        LoggingSystem.bootstrap { [level = settings.logLevel] label in
            var handler = StreamLogHandler.standardError(label: label)
            handler.logLevel = level
            return handler
        }
        let page = MetricsPage()
        MetricsSystem.bootstrap(page)
        let logger = Logger(label: "redisdc-gateway")

        let redis = try RedisClient(url: settings.redisURL)
        var officeConfiguration = PostOfficeConfiguration()
        // A device whose session has expired is forgotten after a while, in which its user can log in again.
        officeConfiguration.limits.deviceTTL = .seconds(settings.sessionMinutes * 60 + 86400)
        let office = try PostOffice(redis: redis, namespace: settings.namespace, configuration: officeConfiguration)
        let gateway = try await gateway(settings, redis, office, logger)
        let dashboard = try dashboard(settings, redis, office, logger)

        // They end in the reverse order: the streams first, then what they use.
        var services: [any Service] = [redis, office]
        if let dashboard { services.append(dashboard.coordinator) }
        services += [
            gateway, operations(settings, gateway, dashboard?.page, page, redis, logger),
            try application(settings, gateway, redis, logger),
        ]
        var group = ServiceGroupConfiguration(
            services: services, gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
        // A client may take for ever to send its request.
        group.maximumGracefulShutdownDuration = .seconds(settings.shutdownSeconds)
        try await ServiceGroup(configuration: group).run()
    }

    private static func gateway(
        _ settings: Settings, _ redis: RedisClient, _ office: PostOffice, _ logger: Logger
    ) async throws -> Gateway {
        let authenticator: any Authenticator =
            switch settings.credentials {
            case .tokens(let tokens): try await JWTAuthenticator(tokens)
            case .anonymous: AnonymousAuthenticator()
            }
        let allowsSends = settings.allowsSends
        return Gateway(
            redis: redis, office: office,
            coordinator: try Coordinator(redis: redis, namespace: settings.namespace), authenticator: authenticator,
            authorize: { _ in allowsSends }, configuration: settings.gatewayConfiguration, logger: logger)
    }

    /// The application for clients.
    private static func application(
        _ settings: Settings, _ gateway: Gateway, _ redis: RedisClient, _ logger: Logger
    ) throws -> some Service {
        let router = Router(context: Context.self)
        router.add(middleware: TracingMiddleware())
        router.add(middleware: MetricsMiddleware())
        if let folder = settings.staticFolder {
            router.add(middleware: NoSniffMiddleware())
            router.add(
                middleware: FileMiddleware(
                    fileProvider: try StaticFolder(folder, logger: logger), searchForIndexHtml: true))
        }
        gateway.addRoutes(to: router)
        addHealth(to: router, redis)
        let scheme = settings.usesTLS ? "https" : "http"
        return Application(
            router: router, server: try server(settings, gateway),
            configuration: ApplicationConfiguration(address: .hostname(settings.host, port: settings.port)),
            onServerRunning: { channel in
                print("serving \(scheme)://\(settings.host):\(channel.localAddress?.port ?? settings.port)")
                fflush(nil)
            }, logger: logger)
    }

    private static func server(_ settings: Settings, _ gateway: Gateway) throws -> HTTPServerBuilder {
        guard let certificate = settings.certificate, let key = settings.key else { return gateway.server() }
        let chain = try NIOSSLCertificate.fromPEMFile(certificate).map { NIOSSLCertificateSource.certificate($0) }
        var tls = TLSConfiguration.makeServerConfiguration(
            certificateChain: chain, privateKey: .privateKey(try NIOSSLPrivateKey(file: key, format: .pem)))
        tls.minimumTLSVersion = .tlsv12
        return try .tls(gateway.server(), tlsConfiguration: tls)
    }

    /// The application for operators, on an address of its own.
    private static func operations(
        _ settings: Settings, _ gateway: Gateway, _ dashboard: Dashboard?, _ page: MetricsPage, _ redis: RedisClient,
        _ logger: Logger
    ) -> some Service {
        let router = Router(context: Context.self)
        if Settings.isLoopback(settings.operationsHost) { router.add(middleware: LoopbackMiddleware()) }
        addHealth(to: router, redis)
        router.get("/metrics") { _, _ in
            Meter(label: "gateway_streams").set(gateway.openStreams)
            Meter(label: "gateway_connections").set(gateway.openConnections)
            Meter(label: "gateway_body_bytes").set(gateway.bodyBytesInFlight)
            return Response(
                status: .ok, headers: [.contentType: "text/plain; version=0.0.4", .cacheControl: "no-store"],
                body: .init(byteBuffer: ByteBuffer(string: page.text)))
        }
        dashboard?.addRoutes(to: router)
        return Application(
            router: router, server: gateway.operationsServer(),
            configuration: ApplicationConfiguration(
                address: .hostname(settings.operationsHost, port: settings.operationsPort)),
            onServerRunning: { channel in
                print("operations http://\(settings.operationsHost):\(channel.localAddress?.port ?? 0)")
                fflush(nil)
            }, logger: logger)
    }

    /// The operators' page, if there is a key, with the coordinator that it needs.
    private static func dashboard(
        _ settings: Settings, _ redis: RedisClient, _ office: PostOffice, _ logger: Logger
    ) throws -> (page: Dashboard, coordinator: Coordinator)? {
        guard let key = settings.adminKey else { return nil }
        var configuration = CoordinatorConfiguration()
        configuration.partitions = settings.adminPartitions
        configuration.nodeName = "redisdc-gateway dashboard"
        let coordinator = try Coordinator(
            redis: redis, namespace: settings.adminNamespace, configuration: configuration)
        let page = Dashboard(
            key: key, redis: redis, office: office, coordinator: coordinator,
            deadLetterMailboxes: settings.adminDeadLetters, logger: logger)
        return (page, coordinator)
    }

    private static func addHealth(to router: Router<Context>, _ redis: RedisClient) {
        router.get("/healthz") { _, _ in health(.ok, "ok\n") }
        router.get("/readyz") { _, _ in
            do {
                _ = try await redis.send(RedisCommand("PING"), timeout: .seconds(2))
                return health(.ok, "ok\n")
            } catch {
                return health(.serviceUnavailable, "Redis does not answer\n")
            }
        }
    }

    private static func health(_ status: HTTPResponse.Status, _ text: String) -> Response {
        Response(
            status: status, headers: [.contentType: "text/plain; charset=utf-8", .cacheControl: "no-store"],
            body: .init(byteBuffer: ByteBuffer(string: text)))
    }
}
