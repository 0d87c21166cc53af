import AsyncHTTPClient
import Crypto
import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import Testing

@testable import Gateway

/// A client of the gateway, as docs/http.md describes it. It shares no code for signatures with the gateway.
struct TestClient: Sendable {
    var url: String
    var user: String
    var device: String
    var session = ""
    var token = ""
    var cursor = ""
    var cookie = ""

    /// The client that trusts a test's authority, while such a test runs.
    @TaskLocal static var secureHTTP: HTTPClient?

    static var http: HTTPClient { secureHTTP ?? plainHTTP }

    /// Without a low limit of connections: each open stream needs one.
    private static let plainHTTP: HTTPClient = {
        var configuration = HTTPClient.Configuration()
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 10_000
        // The node closes a connection after ten idle seconds: no request should meet that.
        configuration.connectionPool.idleTimeout = .seconds(5)
        return HTTPClient(eventLoopGroup: .singletonMultiThreadedEventLoopGroup, configuration: configuration)
    }()

    /// A reply.
    struct Reply: Sendable {
        var status: Int
        var headers: HTTPHeaders
        var body: JSON
        /// The last word of a problem's type.
        var problem: String? { body["type"]?.string.map { String($0.dropFirst("urn:redisdc:".count)) } }
        var texts: [String] { (body["messages"]?.array ?? []).compactMap { $0["text"]?.string } }
        var cursor: String { body["cursor"]?.string ?? "" }
    }

    /// Logs in.
    init(_ url: String, _ user: String, device: String = "phone") async throws {
        (self.url, self.user, self.device) = (url, user, device)
        let reply = try await Self.login(url, user, device)
        try #require(reply.status == 201, "\(reply)")
        session = reply.body["session"]?.string ?? ""
        token = reply.body["token"]?.string ?? ""
        cursor = reply.cursor
        cookie = reply.headers["Set-Cookie"].first.map { String($0.prefix { $0 != ";" }) } ?? ""
    }

    static func login(
        _ url: String, _ user: String, _ device: String, credential: JSON? = nil, headers: HTTPHeaders = [:]
    ) async throws -> Reply {
        let body: JSON = [
            "user": .string(user), "device": .string(device), "credential": credential ?? .string("secret of \(user)"),
        ]
        var headers = headers
        if !headers.contains(name: "Content-Type") { headers.add(name: "Content-Type", value: "application/json") }
        return try await perform("POST", url + "/v1/sessions", headers, body.bytes)
    }

    /// The same client at another node.
    func at(_ url: String) -> TestClient {
        var copy = self
        copy.url = url
        return copy
    }

    // MARK: Signed calls

    /// The headers of a signed request.
    func headers(
        _ method: String, _ target: String, _ body: [UInt8] = [], time: Int? = nil, nonce: String? = nil
    ) -> HTTPHeaders {
        let time = "\(time ?? Int(Date().timeIntervalSince1970 * 1000))"
        let nonce = nonce ?? UUID().uuidString
        let signature = Self.signature(
            token: token, [method, target, session, time, nonce], body: body)
        var headers: HTTPHeaders = [
            "X-Session": session, "X-Time": time, "X-Nonce": nonce, "X-Signature": signature,
        ]
        if !body.isEmpty { headers.add(name: "Content-Type", value: "application/json") }
        return headers
    }

    /// - Parameter parts: method, target, session, time and nonce.
    static func signature(token: String, _ parts: [String], body: [UInt8]) -> String {
        let hash = SHA256.hash(data: body).map { String(format: "%02x", $0) }.joined()
        let text = (["v1"] + parts + [hash]).joined(separator: "\n")
        let code = HMAC<SHA256>.authenticationCode(
            for: Data(text.utf8), using: SymmetricKey(data: Data(token.utf8)))
        return "v1=" + code.map { String(format: "%02x", $0) }.joined()
    }

    func call(_ method: String, _ target: String, _ body: JSON? = nil) async throws -> Reply {
        let bytes = body?.bytes ?? []
        return try await Self.perform(method, url + target, headers(method, target, bytes), bytes)
    }

    /// Reads once, without waiting.
    func mail(after: String? = nil, wait: Int = 0, _ more: String = "") async throws -> Reply {
        try await call("GET", "/v1/mail?wait=\(wait)" + (after.map { "&after=\($0)" } ?? "") + more)
    }

    func ack(_ cursor: String) async throws -> Reply { try await call("POST", "/v1/ack", ["cursor": .string(cursor)]) }

    func send(_ texts: [String], to names: [String], id: String = UUID().uuidString) async throws -> Reply {
        try await call(
            "POST", "/v1/send",
            [
                "to": .array(names.map { .string($0) }), "id": .string(id),
                "messages": .array(texts.map { ["text": .string($0)] }),
            ])
    }

    static func perform(
        _ method: String, _ url: String, _ headers: HTTPHeaders, _ body: [UInt8] = []
    ) async throws -> Reply {
        var request = HTTPClientRequest(url: url)
        request.method = HTTPMethod(rawValue: method)
        request.headers = headers
        if !body.isEmpty { request.body = .bytes(ByteBuffer(bytes: body)) }
        let response = try await TestClient.http.execute(request, timeout: .seconds(120))
        let bytes = try await response.body.collect(upTo: 32 << 20)
        let json = (try? JSONParser.parse(Array(bytes.readableBytesView))) ?? .null
        return Reply(status: Int(response.status.code), headers: response.headers, body: json)
    }
}

extension TestClient {
    /// A client that has not logged in.
    init(url: String, user: String, device: String) { (self.url, self.user, self.device) = (url, user, device) }
}

/// Fetches a page.
func fetch(_ url: String) async throws -> (status: Int, body: [UInt8]) {
    let response = try await TestClient.http.execute(HTTPClientRequest(url: url), timeout: .seconds(60))
    return (Int(response.status.code), Array(try await response.body.collect(upTo: 1 << 20).readableBytesView))
}
