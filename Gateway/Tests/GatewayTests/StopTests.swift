import Hummingbird
import HummingbirdCore
import Logging
import NIOConcurrencyHelpers
import NIOCore
import NIOPosix
import RedisDCTesting
import ServiceLifecycle
import Testing

@testable import Gateway

/// Servers that stop while clients connect.
@Suite("Servers that stop", .timeLimit(.minutes(10)))
struct StopTests {
    /// How a server stops.
    enum Stop: CaseIterable, Sendable {
        case gracefully, cancelled
    }

    /// Connects clients to a port, each again and again, until the server there has stopped. Returns when all of their
    /// connections have ended.
    private static func connect(to port: Int, untilStopped stop: () async throws -> Void) async throws {
        let hasStopped = NIOLockedValueBox(false)
        try await withThrowingTaskGroup(of: Void.self) { clients in
            for _ in 0..<16 {
                clients.addTask {
                    // Another server may listen on the port soon.
                    while !hasStopped.withLockedValue({ $0 }) {
                        do {
                            try await withRawConnection(port: port) { connection in
                                // The server may have closed the connection.
                                try? await connection.write("GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n")
                                _ = try await connection.readHead()
                            }
                        } catch is NIOConnectionError { return }
                    }
                }
            }
            try await Task.sleep(for: .microseconds(Int.random(in: 1000...10_000)))
            try await stop()
            hasStopped.withLockedValue { $0 = true }
            try await clients.waitForAll()
        }
    }

    /// Runs a server for a moment while clients connect.
    private static func run(_ server: HTTPServerBuilder, _ stop: Stop) async throws {
        let (ports, continuation) = AsyncStream<Int>.makeStream()
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        let router = Router()
        router.get("/healthz") { _, _ in "ok\n" }
        let application = Application(
            router: router, server: server,
            configuration: ApplicationConfiguration(address: .hostname("127.0.0.1", port: 0)),
            onServerRunning: { continuation.yield($0.localAddress?.port ?? 0) }, logger: logger)
        let group = ServiceGroup(services: [application], logger: logger)
        let running = Task { try await group.run() }
        var iterator = ports.makeAsyncIterator()
        try await connect(to: try #require(await iterator.next())) {
            switch stop {
            case .gracefully: await group.triggerGracefulShutdown()
            case .cancelled: running.cancel()
            }
            _ = await running.result
        }
    }

    @Test("the gateway's server closes each connection that it drops while it stops", arguments: Stop.allCases)
    func gateway(stop: Stop) async throws {
        try await withNodes { nodes, _ in
            for _ in 0..<100 { try await Self.run(nodes[0].gateway.server(), stop) }
        }
    }

    @Test("a connection that another server drops while it stops is closed, too", arguments: Stop.allCases)
    func plain(stop: Stop) async throws { for _ in 0..<100 { try await Self.run(.plain, stop) } }

    @Test("a node that gets SIGTERM while clients connect ends without an error")
    func process() async throws {
        try await withLocalRedis { server in
            for _ in 0..<10 {
                let node = try GatewayProcess.node(server)
                let url = try await node.url()
                try await Self.connect(to: try #require(url.split(separator: ":").last.flatMap { Int($0) })) {
                    node.terminate()
                    try await until("the node has ended") { !node.isRunning }
                }
                #expect(node.status == 0, "\(node.output)")
            }
        }
    }
}
