import Configuration
import Foundation
import GameServices
import Gateway
import Hiredis
import Hummingbird
import Logging
import QueueListen
import RedisDC
import ServiceLifecycle
import UnixSignals

/// A call, or a reply, without content.
struct EmptyCall: Codable {}

/// A node of the arcade.
@main
struct Arcade {
    static func main() async {
        let arguments = CommandLine.arguments
        if arguments.contains("--help") || arguments.contains("-h") {
            print(Settings.usage)
            return
        }
        do {
            let reader = ConfigReader(providers: [
                CommandLineArgumentsProvider(arguments: arguments), EnvironmentVariablesProvider(),
            ])
            try await run(try Settings(reader))
        } catch {
            FileHandle.standardError.write(Data("arcade: \(error)\n".utf8))
            exit(1)
        }
    }

    private static func run(_ settings: Settings) async throws {
        LoggingSystem.bootstrap { StreamLogHandler.standardError(label: $0) }
        var logger = Logger(label: "arcade")
        logger.logLevel = .notice

        let redis = try RedisClient(url: settings.redisURL)
        let office = try PostOffice(redis: redis, namespace: settings.namespace)
        var coordination = CoordinatorConfiguration()
        // A node that dies while it holds a lock keeps the others waiting for this time.
        coordination.ttl = settings.lockTTL
        let coordinator = try Coordinator(redis: redis, namespace: settings.namespace, configuration: coordination)
        let presence = try Presence(redis: redis, namespace: settings.namespace)

        let mail: any MailSender =
            if let folder = settings.mailFolder { FolderSender(folder: folder) } else {
                LoggingMailSender(logger: logger)
            }
        let push: any PushSender =
            if let folder = settings.pushFolder { FolderSender(folder: folder) } else {
                LoggingPushSender(logger: logger)
            }
        let accounts = Accounts(
            redis: redis, namespace: settings.namespace, coordinator: coordinator, office: office, mail: mail,
            logger: logger)
        let ticTacToe = try TicTacToeService(
            presence: presence, office: office, coordinator: coordinator, grace: settings.grace, logger: logger)
        let quiz = try QuizService(
            presence: presence, office: office, coordinator: coordinator, redis: redis, grace: settings.grace,
            logger: logger)
        let attendance = try Attendance(presence, logger: logger)
        let duel = try DuelService(
            redis: redis, office: office, accounts: accounts, attendance: attendance, push: push,
            namespace: settings.namespace, logger: logger)
        let wordGame = try WordGameService(redis: redis, namespace: settings.namespace)
        let limit = AddressLimit(coordinator: coordinator, trustsForwardedFor: settings.isSecure)
        let scores = try ScoresInterface(redis: redis, namespace: settings.namespace, limit: limit)

        var configuration = GatewayConfiguration()
        configuration.allowedOrigins = settings.origins
        configuration.isSecure = settings.isSecure
        configuration.trustsForwardedFor = settings.isSecure
        configuration.reconnectDelay = .milliseconds(300)
        configuration.maxReconnectTime = .milliseconds(500)
        let gateway = Gateway(
            redis: redis, office: office, coordinator: coordinator,
            authenticator: accounts,
            whileListening: { caller in
                await withDiscardingTaskGroup { group in
                    group.addTask { await attendance.serve(caller) }
                    // A page connects as a device with the name of its game.
                    switch caller.device.prefix(while: { $0 != "." }) {
                    case "tictactoe": group.addTask { await ticTacToe.room.serve(caller) }
                    case "quiz": group.addTask { await quiz.room.serve(caller) }
                    default: break
                    }
                }
            }, configuration: configuration, logger: logger)

        accounts.guests.onRemoval { name, keptDevice in
            // No session may stay that could act for the next owner of the name.
            try await accounts.endSessions(of: name, except: keptDevice, gateway)
            try await duel.remove(name)
            try await wordGame.remove(name)
            try await scores.remove(name)
            try await office.mailbox(name).delete()
        }

        let router = Router(context: ArcadeContext.self)
        router.add(middleware: PageHeaders())
        router.add(middleware: FileMiddleware(settings.pages, searchForIndexHtml: true, logger: logger))
        let client = try String(contentsOfFile: settings.client + "/redisdc.js", encoding: .utf8)
        router.get("/redisdc.js") { _, _ in
            Response(
                status: .ok, headers: [.contentType: "text/javascript"], body: .init(byteBuffer: .init(string: client)))
        }
        router.get("/healthz") { _, _ in "ok\n" }
        gateway.addRoutes(to: router)
        accounts.addCalls(gateway, router, limit)
        ticTacToe.addCalls(gateway, router)
        quiz.addCalls(gateway, router)
        duel.addCalls(gateway, router)
        wordGame.addCalls(gateway, router, limit)
        scores.addCalls(gateway, router)
        gateway.addCall("/account/leave", to: router) { (_: EmptyCall, caller) in
            try await answering {
                try await accounts.leave(caller, gateway)
                return EmptyCall()
            }
        }
        scores.addRoutes(to: router)
        PublishedInterface(router.buildResponder(), office).addRoute(to: router)
        let application = Application(
            router: router, server: gateway.server(),
            configuration: ApplicationConfiguration(address: .hostname(settings.host, port: settings.port)),
            onServerRunning: { channel in
                print("serving http://\(settings.host):\(channel.localAddress?.port ?? settings.port)")
                fflush(nil)
            }, logger: logger)

        // They end in the reverse order: first the requests and streams, last what they use.
        var group = ServiceGroupConfiguration(
            services: [redis, office, coordinator, presence, ticTacToe.room, quiz.room, duel, gateway, application],
            gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
        group.maximumGracefulShutdownDuration = .seconds(20)
        try await ServiceGroup(configuration: group).run()
    }
}
