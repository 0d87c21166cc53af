import Hummingbird
import NIOCore
import Testing

@testable import Gateway

/// The bodies that the node holds, and their parts.
@Suite("The limits of bodies")
struct BodyLimitTests {
    /// The head of a request, and the status of the reply.
    private func head(_ target: String, _ headers: [String]) -> String {
        "POST \(target) HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\n"
            + headers.map { $0 + "\r\n" }.joined() + "\r\n"
    }

    private func signed(_ client: TestClient, _ target: String, time: Int? = nil) -> [String] {
        client.headers("POST", target, time: time).map { "\($0.name): \($0.value)" }
    }

    @Test("a body in chunks of exactly the limit is accepted, and one that passes it is refused before it has ended")
    func chunks() async throws {
        let login = #"{"user":"alice","device":"phone","credential":"secret of alice"}"#
        let limit = 1000
        try await withNodes(configure: { $0.maxLoginBodyBytes = limit }) { nodes, _ in
            for (more, status) in [(0, "201"), (1, "413")] {
                let answer = try await withRawConnection(port: nodes[0].port) { connection in
                    try await connection.write(head("/v1/sessions", ["Transfer-Encoding: chunked"]))
                    var rest = login + String(repeating: " ", count: limit - login.utf8.count + more)
                    while !rest.isEmpty {
                        let part = rest.prefix(100)
                        rest.removeFirst(part.count)
                        try await connection.write("\(String(part.utf8.count, radix: 16))\r\n\(part)\r\n")
                    }
                    // The end is sent only where the gateway must wait for it.
                    if more == 0 { try await connection.write("0\r\n\r\n") }
                    return try await connection.readHead()
                }
                #expect(answer?.hasPrefix("HTTP/1.1 \(status) ") == true, "\(answer ?? "nothing")")
            }
        }
    }

    @Test("400 bodies of requests that are not signed are refused before they arrive, and their connections are closed")
    func unsigned() async throws {
        try await withNodes(configure: { $0.maxConnections = 1000 }) { nodes, _ in
            let alice = try await TestClient(nodes[0].url, "alice")
            var stranger = alice
            stranger.session = SessionID(randomFor: "alice").description
            let kinds: [(headers: [String], problem: String)] = [
                ([], "unsigned"), (signed(stranger, "/v1/send"), "unknown-session"),
                (signed(alice, "/v1/send", time: 1), "stale"),
            ]
            try await withThrowingTaskGroup { group in
                for number in 0..<400 {
                    let kind = kinds[number % kinds.count]
                    group.addTask {
                        let text = try await withRawConnection(port: nodes[0].port) { connection in
                            try await connection.write(
                                head("/v1/send", kind.headers + ["Content-Length: 1048575"])
                                    + String(repeating: " ", count: 10_000))
                            return String(decoding: try await connection.readToEnd(), as: UTF8.self)
                        }
                        #expect(
                            text.hasPrefix("HTTP/1.1 401 ") && text.contains("urn:redisdc:\(kind.problem)\""), "\(text)"
                        )
                        #expect(text.lowercased().contains("\r\nconnection: close\r\n"), "\(text)")
                    }
                }
                try await group.waitForAll()
            }
            #expect(nodes[0].gateway.bodyBytesInFlight == 0)
            #expect(try await alice.send(["still here"], to: ["alice"]).status == 200)
        }
    }

    @Test("a body that a call does not want and that is small leaves its connection open")
    func kept() async throws {
        try await withNodes { nodes, _ in
            try await withRawConnection(port: nodes[0].port) { connection in
                for _ in 1...2 {
                    try await connection.write(head("/v1/send", ["Content-Length: 1000"]))
                    let answer = try #require(try await connection.readHead())
                    #expect(answer.hasPrefix("HTTP/1.1 401 "))
                    let length = try #require(answer.lowercased().firstMatch(of: /content-length: ([0-9]+)/))
                    _ = try await connection.read(Int(length.1) ?? 0)
                    try await connection.write(String(repeating: " ", count: 1000))
                }
            }
        }
    }

    @Test("a login of more than 16 KiB is refused before it arrives")
    func login() async throws {
        try await withNodes { nodes, _ in
            let answer = try await withRawConnection(port: nodes[0].port) { connection in
                try await connection.write(head("/v1/sessions", ["Content-Length: 16385"]))
                return try await connection.readHead()
            }
            #expect(answer?.hasPrefix("HTTP/1.1 413 ") == true, "\(answer ?? "nothing")")
        }
    }

    @Test("bodies that do not end are bounded together: the oldest large ones are closed, and a new one is accepted")
    func inFlight() async throws {
        let limit = 1_000_000
        try await withNodes(configure: {
            $0.maxBodyBytes = 100_000
            $0.maxBodyBytesInFlight = limit
        }) { nodes, _ in
            let alice = try await TestClient(nodes[0].url, "alice")
            try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<100 {
                    group.addTask {
                        try await withRawConnection(port: nodes[0].port) { connection in
                            // The session exists, and only the end of the body would show that the signature is wrong.
                            try await connection.write(
                                head("/v1/send", signed(alice, "/v1/send") + ["Content-Length: 100000"]))
                            try? await connection.write(String(repeating: " ", count: 99_999))
                            return try await connection.readToEnd().count
                        }
                    }
                }
                // At most ten remain.
                for _ in 0..<80 {
                    let received = try await group.next()
                    #expect(received == 0)
                    #expect(nodes[0].gateway.bodyBytesInFlight <= limit)
                }
                let large = String(repeating: "x", count: 90_000)
                for _ in 1...10 { #expect(try await alice.send([large], to: ["alice"]).status == 200) }
                #expect(nodes[0].gateway.bodyBytesInFlight <= limit)
                group.cancelAll()
                while let result = await group.nextResult() { _ = result }
            }
            try await until("nothing is held") { nodes[0].gateway.bodyBytesInFlight == 0 }
        }
    }

    @Test(
        "a body that is not well-formed, or breaks off, is the client's error: 400, and no line of the log",
        arguments: ["/v1/sessions", "/v1/send", "/games/move"])
    func malformed(target: String) async throws {
        struct Content: Codable {}
        try await withNodes(addCalls: { gateway, router in
            gateway.addCall("/games/move", to: router) { (content: Content, _) in content }
        }) { nodes, _ in
            let alice = try await TestClient(nodes[0].url, "alice")
            let trailers = (0..<300).map { "X-\($0): 1\r\n" }.joined()
            let bodies = [
                ("Transfer-Encoding: chunked", "none\r\n{}\r\n0\r\n\r\n"),
                ("Transfer-Encoding: chunked", "2\r\n{}0\r\n\r\n"),
                ("Transfer-Encoding: chunked", "2\r\n{}\r\n0\r\n\(trailers)\r\n"),
                ("Transfer-Encoding: chunked", "2\r\n{}\r\n"), ("Content-Length: 10", "{}"),
            ]
            for (framing, body) in bodies {
                let headers = target == "/v1/sessions" ? [] : signed(alice, target)
                let text = try await withRawConnection(port: nodes[0].port) { connection in
                    try await connection.write(head(target, headers + [framing]))
                    try await until("the body is read") { nodes[0].gateway.bodies.count == 1 }
                    try await connection.write(body)
                    // The gateway may have closed the connection.
                    try? await connection.channel.close(mode: .output)
                    return String(decoding: try await connection.readToEnd(), as: UTF8.self)
                }
                // A client that closes its half before the end of its request may get no reply.
                let hasBrokenOff = !body.contains("0\r\n")
                #expect(hasBrokenOff && text.isEmpty || text.hasPrefix("HTTP/1.1 400 "), "\(body): \(text)")
                #expect(text.isEmpty || text.contains("urn:redisdc:malformed"), "\(body): \(text)")
            }
            let lines = nodes[0].log.text.split(separator: "\n")
            #expect(lines.filter { $0.hasPrefix("error ") || $0.hasPrefix("warning ") } == [])
        }
    }
}
