import Foundation
import Gateway
import Hiredis
import Hummingbird
import Logging
import NIOCore
import QueueListen
import RedisDC
import ServiceLifecycle

/// Accepts every login.
private struct Anybody: Authenticator {
    func authenticate(_ login: Login) async throws -> Bool { true }
}

extension GatewayBenchmarks {
    /// Runs a server until it is killed or its input ends: the gateway on a Redis server, or an empty one.
    static func serve(_ words: [String]) async throws {
        var logger = Logger(label: "bench")
        logger.logLevel = .error
        let router = Router()
        router.get("/empty") { _, _ in Response(status: .ok, body: .init(byteBuffer: ByteBuffer(string: "{}"))) }
        // A stream that does not notice that its client has gone.
        router.get("/plain") { _, _ in
            Response(
                status: .ok, headers: [.contentType: "text/event-stream"],
                body: ResponseBody { writer in
                    try await writer.write(ByteBuffer(string: "retry: 2000\n\n"))
                    let (ticks, continuation) = AsyncStream<Void>.makeStream()
                    for await _ in ticks {}
                    continuation.finish()
                    try await writer.finish(nil)
                })
        }
        router.get("/idle") { request, _ in
            Response(
                status: .ok, headers: [.contentType: "text/event-stream"],
                body: ResponseBody { writer in
                    try await writer.write(ByteBuffer(string: "retry: 2000\n\n"))
                    let (ticks, continuation) = AsyncStream<Void>.makeStream()
                    try await request.body.consumeWithInboundCloseHandler { _ in
                        for await _ in ticks {}
                    } onInboundClosed: {
                        continuation.finish()
                    }
                    try await writer.finish(nil)
                })
        }
        let configuration = ApplicationConfiguration(address: .hostname("127.0.0.1", port: 0), backlog: 1024)
        let isRunning: @Sendable (any Channel) async -> Void = { channel in
            print("port \(channel.localAddress?.port ?? 0)")
            fflush(nil)
        }
        // The parent holds the other end.
        Thread.detachNewThread {
            _ = FileHandle.standardInput.readDataToEndOfFile()
            exit(0)
        }
        let services: [any Service]
        if let url = words.first {
            let redis = try RedisClient(url: url)
            let office = try PostOffice(redis: redis)
            var settings = GatewayConfiguration()
            settings.isSecure = false
            settings.requestsPerSecond = nil
            settings.maxConnections = 1_000_000
            settings.maxConnectionsOfAddress = nil
            settings.loginsOfUserPerMinute = 1_000_000
            settings.loginsFromAddressPerMinute = 1_000_000
            let gateway = Gateway(
                redis: redis, office: office, coordinator: try Coordinator(redis: redis), authenticator: Anybody(),
                authorize: { _ in true }, configuration: settings, logger: logger)
            gateway.addRoutes(to: router)
            let application = Application(
                router: router, server: gateway.server(), configuration: configuration, onServerRunning: isRunning,
                logger: logger)
            services = [redis, office, gateway, application]
        } else {
            services = [
                Application(router: router, configuration: configuration, onServerRunning: isRunning, logger: logger)
            ]
        }
        try await ServiceGroup(services: services, logger: logger).run()
    }
}

/// A server as a process of its own. It ends with this object, and with this process.
final class ServerProcess: @unchecked Sendable {  // Process is not Sendable; only start and deinit touch it.
    private let process = Process()
    private let input = Pipe()
    let port: Int
    var processID: Int32 { process.processIdentifier }

    /// - Parameter url: of Redis, for a gateway; `nil` for an empty server.
    init(_ url: String?) throws {
        let output = Pipe()
        process.executableURL = Bundle.main.executableURL
        process.arguments = ["serve"] + (url.map { [$0] } ?? [])
        process.standardInput = input
        process.standardOutput = output
        try process.run()
        var line = Data()
        while !line.contains(UInt8(ascii: "\n")) {
            let data = output.fileHandleForReading.availableData
            guard !data.isEmpty else { throw BenchmarkError("a server has ended") }
            line += data
        }
        let text = String(decoding: line, as: UTF8.self)
        guard let port = text.split(whereSeparator: \.isWhitespace).last.flatMap({ Int($0) }) else {
            throw BenchmarkError("a server has printed \(text)")
        }
        self.port = port
    }

    deinit { kill() }

    func kill() {
        guard process.isRunning else { return }
        Foundation.kill(processID, SIGKILL)
        process.waitUntilExit()
    }

    /// The memory that the process uses, in bytes.
    func memory() throws -> Double {
        let ps = Process()
        ps.executableURL = URL(fileURLWithPath: "/bin/ps")
        ps.arguments = ["-o", "rss=", "-p", "\(processID)"]
        let output = Pipe()
        ps.standardOutput = output
        try ps.run()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        ps.waitUntilExit()
        guard let kilobytes = Double(text.trimmingCharacters(in: .whitespacesAndNewlines)) else {
            throw BenchmarkError("ps has printed \(text)")
        }
        return kilobytes * 1024
    }
}

struct BenchmarkError: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
