import Testing

@testable import Gateway

/// Requests that ask for another protocol than the one the gateway upgrades to, as some HTTP clients always do.
@Suite("Upgrades that are not accepted")
struct UpgradeTests {
    private static let login = #"{"user":"alice","device":"phone","credential":"secret of alice"}"#

    private static func request(_ line: String, _ headers: String, upgrade: String = "h2c") -> String {
        "\(line) HTTP/1.1\r\nHost: gateway\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: \(upgrade)\r\n"
            + "HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA\r\n\(headers)\r\n"
    }

    @Test(
        "a request with a body is answered as HTTP/1.1, and its connection is closed",
        arguments: [
            ("Content-Length: \(login.utf8.count)\r\n", [login]),
            ("Content-Length: \(login.utf8.count)\r\n", [String(login.prefix(10)), String(login.dropFirst(10))]),
            ("Transfer-Encoding: chunked\r\n", ["\(String(login.utf8.count, radix: 16))\r\n\(login)\r\n0\r\n\r\n"]),
            ("Transfer-Encoding: chunked\r\n", ["\(String(login.utf8.count, radix: 16))\r\n", login, "\r\n0\r\n\r\n"]),
        ])
    func body(headers: String, parts: [String]) async throws {
        try await withNodes { nodes, _ in
            for isOnePacket in [true, false] {
                let head = Self.request("POST /v1/sessions", "Content-Type: application/json\r\n" + headers)
                let answer = try await withRawConnection(port: nodes[0].port) { connection in
                    if isOnePacket {
                        try await connection.write(head + parts.joined())
                    } else {
                        // Flushed one by one, so that the gateway can receive them one by one.
                        for part in [head] + parts { try await connection.write(part) }
                    }
                    return String(decoding: try await connection.readToEnd(), as: UTF8.self)
                }
                #expect(answer.hasPrefix("HTTP/1.1 201 Created\r\n"), "\(answer)")
                #expect(answer.lowercased().contains("\r\nconnection: close\r\n"), "\(answer)")
                #expect(answer.contains("\"token\""))
            }
        }
    }

    @Test("a request without a body is answered, also as a connection's second one, and nothing after it is read")
    func noBody() async throws {
        try await withNodes { nodes, _ in
            for first in ["", "GET /v1/nothing HTTP/1.1\r\nHost: gateway\r\n\r\n"] {
                for upgrade in ["h2c", "websocket", "TLS/1.0, HTTP/2.0"] {
                    let answer = try await withRawConnection(port: nodes[0].port) { connection in
                        let request = Self.request("GET /v1/mail", "", upgrade: upgrade)
                        let next = "GET /v1/nothing HTTP/1.1\r\nHost: gateway\r\n\r\n"
                        try await connection.write(first + request + next)
                        return String(decoding: try await connection.readToEnd(), as: UTF8.self)
                    }
                    let statuses = answer.split(separator: "HTTP/1.1 ").map { String($0.prefix(3)) }
                    #expect(statuses == (first.isEmpty ? ["401"] : ["404", "401"]), "\(answer)")
                }
            }
        }
    }

    @Test("CONNECT is answered, and its connection is closed")
    func connect() async throws {
        try await withNodes { nodes, _ in
            let answer = try await withRawConnection(port: nodes[0].port) { connection in
                try await connection.write("CONNECT other:443 HTTP/1.1\r\nHost: other:443\r\n\r\n")
                return String(decoding: try await connection.readToEnd(), as: UTF8.self)
            }
            #expect(answer.hasPrefix("HTTP/1.1 40"), "\(answer)")
        }
    }
}
