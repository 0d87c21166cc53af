import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import RedisDCTesting
import Testing

@testable import Gateway

/// The stand-alone program with a certificate of a test's own authority.
@Suite("TLS", .timeLimit(.minutes(10)))
struct TLSTests {
    private func withSecureNode(
        _ body: (_ url: String, TLSConfiguration) async throws -> Void
    ) async throws {
        try await withTestCertificates { certificates in
            try await withLocalRedis { server in
                let node = try GatewayProcess.node(
                    server, ["--tls-certificate", certificates.serverCertificate, "--tls-key", certificates.serverKey])
                var tls = TLSConfiguration.makeClientConfiguration()
                tls.trustRoots = .file(certificates.authority)
                let url = try await node.url()
                #expect(url.hasPrefix("https://"))
                try await body(url.replacing("https://127.0.0.1", with: "https://localhost"), tls)
            }
        }
    }

    @Test("logins, sends, polls, event streams and sockets work over TLS, with a cookie for TLS alone")
    func calls() async throws {
        try await withSecureNode { url, tls in
            try await TestClient.withTLS(tls) {
                let alice = try await TestClient(url, "alice")
                #expect(alice.cookie.hasPrefix("__Host-redisdc-events="))
                #expect(try await alice.send(["1", "2"], to: ["alice"]).status == 200)
                #expect(try await alice.mail().texts == ["1", "2"])
                var events = try await TestEvents(
                    url + "/v1/events", ["Cookie": alice.cookie, "Sec-Fetch-Site": "same-origin"]
                ).makeAsyncIterator()
                #expect(try await events.next()?.data["text"] == "1")
                #expect(try await events.next()?.data["text"] == "2")
                let id = events.id
                let socket = try await TestSocket.open(alice, after: id)
                #expect(try await events.next()?.name == "superseded")
                // More than a record of TLS, and more than a connection takes at once.
                let text = String(repeating: "x", count: 200_000)
                try await socket.send(["send": ["to": ["alice"], "id": "1", "messages": [["text": .string(text)]]]])
                var seen: [JSON] = []
                for _ in 0..<2 { seen.append(try #require(try await socket.json())) }
                #expect(seen.contains { $0["sent"] != nil })
                #expect(seen.contains { $0["messages"]?.array?.first?["text"] == .string(text) })
                #expect(try await alice.call("DELETE", "/v1/sessions").status == 204)
                #expect(try await socket.closeCode() == 4001)
            }
        }
    }

    @Test("TLS 1.2 is the oldest version")
    func versions() async throws {
        try await withSecureNode { url, tls in
            for (version, isAccepted) in [(TLSVersion.tlsv11, false), (.tlsv12, true)] {
                var tls = tls
                (tls.minimumTLSVersion, tls.maximumTLSVersion) = (.tlsv1, version)
                try await TestClient.withTLS(tls) {
                    let reply = try? await TestClient.login(url, "alice", "phone")
                    #expect(reply?.status == (isAccepted ? 201 : nil), "\(version)")
                }
            }
        }
    }

    @Test("a client that does not trust the authority, or speaks no TLS, gets nothing")
    func untrusted() async throws {
        try await withSecureNode { url, _ in
            await #expect(throws: (any Error).self) { try await TestClient.login(url, "alice", "phone") }
            let port = try #require(URL(string: url)?.port)
            let answer = try await withRawConnection(port: port) { connection in
                try await connection.write("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                return String(decoding: try await connection.readToEnd(), as: UTF8.self)
            }
            #expect(!answer.contains("HTTP/1.1"))
        }
    }
}

extension TestClient {
    /// Runs a body whose calls, streams and sockets use TLS with these settings.
    static func withTLS(_ tls: TLSConfiguration, _ body: () async throws -> Void) async throws {
        var configuration = HTTPClient.Configuration(tlsConfiguration: tls)
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 10_000
        // As the gateway's server: HTTP/1.1.
        configuration.httpVersion = .http1Only
        let client = HTTPClient(eventLoopGroup: .singletonMultiThreadedEventLoopGroup, configuration: configuration)
        let result: Result<Void, any Error>
        do {
            let context = try NIOSSLContext(configuration: tls)
            result = .success(
                try await TestClient.$secureHTTP.withValue(client) {
                    try await TestSocket.$tls.withValue(context) { try await body() }
                })
        } catch { result = .failure(error) }
        try await client.shutdown()
        try result.get()
    }
}
