import AsyncHTTPClient
import Foundation
import Hiredis
import NIOConcurrencyHelpers
import NIOCore
import NIOHTTP1
import RedisDC
import RedisDCTesting
import Testing

@testable import Gateway

/// The server of the guide Getting started of RedisDC, which is Examples/server.
@Suite("The server of Getting started", .timeLimit(.minutes(10)))
struct ServerExampleTests {
    private let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    @Test("SIGTERM in a request that holds a lock: the request is answered, the lock is free, the status is 0")
    func shutdown() async throws {
        try await withLocalRedis { server in
            let process = try GatewayProcess(
                [], environment: ["REDIS_URL": server.url, "PORT": "0"], program: "server-example")
            var address = ""
            try await until("the server listens") {
                let words = process.output.split(whereSeparator: \.isWhitespace)
                address = words.last { $0.hasPrefix("127.0.0.1:") }.map(String.init) ?? ""
                #expect(process.isRunning, "\(process.output)")
                return !address.isEmpty && !address.hasSuffix(":0")
            }
            let url = "http://\(address)/cook"
            let isCooking = NIOLockedValueBox(true)
            func cook() -> Task<(UInt, String), any Error> {
                Task {
                    defer { isCooking.withLockedValue { $0 = false } }
                    let response = try await HTTPClient.shared.execute(
                        HTTPClientRequest.post(url), timeout: .seconds(300))
                    return (response.status.code, String(buffer: try await response.body.collect(upTo: 1024)))
                }
            }
            try await withRedisClient(url: server.url) { redis in
                try await withCoordinator(redis: redis) { coordinator in
                    var reply = cook()
                    try await until("the request holds the lock") {
                        // It does so for three seconds. If this test has missed them, there is another one.
                        let isOver = isCooking.withLockedValue { isCooking in
                            defer { isCooking = true }
                            return !isCooking
                        }
                        if isOver { reply = cook() }
                        return try await coordinator.inspect("kitchen")?.holders.isEmpty == false
                    }
                    process.terminate()
                    let (status, body) = try await reply.value
                    #expect(status == 200 && body.hasPrefix("cooked with fence "), "\(body)")
                    try await until("the process ends") { !process.isRunning }
                    #expect(process.status == 0, "\(process.output)")
                    // Tries once: a lock that its session's end must free is not free now.
                    try await coordinator.mutex("kitchen").withLock(timeout: .zero) { _ in }
                }
            }
        }
    }

    @Test("the guide shows the program as it is")
    func guide() throws {
        let program = try String(contentsOf: root.appendingPathComponent("Examples/server/Main.swift"), encoding: .utf8)
        let guide = root.deletingLastPathComponent()
            .appendingPathComponent("Sources/RedisDC/RedisDC.docc/GettingStarted.md")
        #expect(try String(contentsOf: guide, encoding: .utf8).contains("```swift\n\(program)```"))
    }
}

extension HTTPClientRequest {
    fileprivate static func post(_ url: String) -> HTTPClientRequest {
        var request = HTTPClientRequest(url: url)
        request.method = .POST
        return request
    }
}
