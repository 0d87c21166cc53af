import Foundation
import GatewayClient
import Hiredis
import Hummingbird
import NIOConcurrencyHelpers
import NIOCore
import QueueListen
import RedisDC
import RedisDCTesting
import ServiceLifecycle
import Testing

@testable import Gateway

/// The examples of docs/gateway.md that mount a gateway, and those of GatewayClient/README.md, line by line, as programs that run.
@Suite("The examples of the READMEs", .timeLimit(.minutes(10)))
struct ReadmeTests {
    private struct MyUsers: Authenticator {
        func authenticate(_ login: Login) async throws -> Bool { login.credentialText == "jwt of \(login.user)" }
    }

    private struct Move: GatewayPayload {
        static let messageType = "move"
        var from: String
        var to: String
    }

    private struct Game: Sendable {
        let moves = NIOLockedValueBox<[String]>([])
        func play(_ move: Move) async { moves.withLockedValue { $0.append("\(move.from) to \(move.to)") } }
    }

    private func withGateway(_ body: (_ url: String) async throws -> Void) async throws {
        try await withLocalRedis { server in
            let redis = try RedisClient(url: server.url)
            let office = try PostOffice(redis: redis)
            let coordinator = try Coordinator(redis: redis)
            let router = Router(context: TestNode.Context.self)
            let mayChat: SendAuthorization = { _ in true }

            let gateway = Gateway(
                redis: redis, office: office, coordinator: coordinator, authenticator: MyUsers(), authorize: mayChat)
            gateway.addRoutes(to: router)
            let application = Application(router: router, server: gateway.server(), services: [redis, office, gateway])

            var served = application
            let port = try await freePort()
            served.configuration.address = .hostname("127.0.0.1", port: port)
            let services = ServiceGroup(services: [served], logger: served.logger)
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { [services] in try await services.run() }
                try await body("http://127.0.0.1:\(port)")
                await services.triggerGracefulShutdown()
                try await group.waitForAll()
            }
        }
    }

    @Test("serve, send, read and acknowledge")
    func run() async throws {
        try await withGateway { url in
            let urls = [url]
            let jwt = "jwt of alice"
            let printed = NIOLockedValueBox<[String]>([])
            @Sendable func print(_ items: Any...) {
                printed.withLockedValue { $0.append(items.map { "\($0)" }.joined(separator: " ")) }
            }

            let client = try await GatewayClient.login(
                to: urls, user: "alice", device: "phone", credential: jwt)

            try await client.send(Move(from: "e2", to: "e4"), to: ["bob"])

            try await client.send(Move(from: "g1", to: "f3"), to: ["alice"])
            let reading = Task {
                for try await event in client.messages() {
                    switch event {
                    case .message(let message):
                        print(message.from ?? "", message.text)
                        try await client.acknowledge(message.cursor)
                    case .gap(let gap): print("messages may be missing: \(gap.loss)")
                    case .superseded: print("another reader of this device has begun")
                    }
                }
            }
            try await until("the message is read") { !printed.withLockedValue { $0.isEmpty } }
            #expect(printed.withLockedValue { $0 }.first?.hasPrefix("alice {") == true)
            reading.cancel()
            _ = await reading.result

            let game = Game()
            var receiver = GatewayReceiver(client) { gap in print("messages may be missing: \(gap.loss)") }
            receiver.handle(Move.self) { move, message in await game.play(move) }
            receiver.handleOthers { message in print(message.text) }
            let handling = Task { [receiver] in
                try await receiver.run()
            }
            try await client.send(Move(from: "d2", to: "d4"), to: ["alice"])
            try await until("the move is played") { game.moves.withLockedValue { $0.last == "d2 to d4" } }
            handling.cancel()
            _ = await handling.result
        }
    }

    @Test("are those that run here")
    func sameLines() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../../..")
        let tests = Self.lines(try String(contentsOfFile: #filePath, encoding: .utf8))
        for (page, count) in [("docs/gateway.md", 1), ("GatewayClient/README.md", 2)] {
            let text = try String(contentsOf: root.appendingPathComponent(page), encoding: .utf8)
            let examples = text.components(separatedBy: "```swift\n").dropFirst().map {
                $0.components(separatedBy: "\n```")[0]
            }.filter { $0.contains("Gateway") }
            #expect(examples.count == count)
            for line in examples.flatMap(Self.lines) {
                #expect(tests.contains(line), "\(page) has this line, and no example here: \(line)")
            }
        }
    }

    /// The lines of a text, without what differs between an example and this test.
    private static func lines(_ text: String) -> [String] {
        text.replacing(#"["https://a.chat.example", "https://b.chat.example"]"#, with: "urls").split(separator: "\n")
            .map { $0.trimmingCharacters(in: .whitespaces).replacing("private ", with: "") }
    }
}
