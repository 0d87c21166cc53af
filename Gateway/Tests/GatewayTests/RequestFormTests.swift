import Foundation
import NIOHTTP1
import QueueListen
import RedisDCTesting
import Testing

@testable import Gateway

/// Requests in forms that HTTP allows and few clients use.
@Suite("Forms of requests")
struct RequestFormTests {
    private static func answer(_ node: TestNode, _ request: String) async throws -> String {
        try await withRawConnection(port: node.port) { connection in
            try await connection.write(request)
            return String(decoding: try await connection.readToEnd(), as: UTF8.self)
        }
    }

    private static func lines(_ client: TestClient, _ target: String) -> String {
        client.headers("GET", target).map { "\($0.name): \($0.value)\r\n" }.joined()
    }

    @Test("a stream to a client of HTTP/1.0 has no chunks, and ends with its connection")
    func old() async throws {
        try await withNodes { nodes, _ in
            let alice = try await TestClient(nodes[0].url, "alice")
            try await nodes[0].office.send("hello", to: "alice")
            let text = try await withRawConnection(port: nodes[0].port) { connection in
                try await connection.write("GET /v1/events HTTP/1.0\r\n\(Self.lines(alice, "/v1/events"))\r\n")
                let head = try #require(try await connection.readHead())
                #expect(head.hasPrefix("HTTP/1.0 200 "), "\(head)")
                #expect(!head.lowercased().contains("transfer-encoding"), "\(head)")
                #expect(head.lowercased().contains("\r\nconnection: close\r\n"), "\(head)")
                let first = try #require(try await connection.readHead(upTo: "\n\n"))
                #expect(first.hasPrefix("retry: "), "\(first)")
                _ = try await alice.call("DELETE", "/v1/sessions")
                return String(decoding: try await connection.readToEnd(), as: UTF8.self)
            }
            #expect(text.contains("event: message") && text.hasSuffix("\n\n"), "\(text)")
            // Replies of a known length too.
            let answer = try await Self.answer(nodes[0], "GET /v1/nothing HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            #expect(answer.hasPrefix("HTTP/1.0 404 "), "\(answer)")
        }
    }

    @Test("a target in absolute form is that of its path, also for the signature")
    func absolute() async throws {
        try await withNodes { nodes, _ in
            let alice = try await TestClient(nodes[0].url, "alice")
            for prefix in ["http://gateway.example", "HTTPS://127.0.0.1:1"] {
                let target = "/v1/mail?wait=0"
                let answer = try await Self.answer(
                    nodes[0],
                    "GET \(prefix)\(target) HTTP/1.1\r\nHost: other\r\nConnection: close\r\n\(Self.lines(alice, target))\r\n"
                )
                #expect(answer.hasPrefix("HTTP/1.1 200 "), "\(answer)")
            }
        }
    }

    @Test("a path has 405 for each method that it does not have, and no reply is stored")
    func methods() async throws {
        try await withNodes { nodes, _ in
            for method in ["TRACE", "PROPFIND", "PUT", "M-SEARCH", "UNSUBSCRIBE"] {
                let mail = try await TestClient.perform(method, nodes[0].url + "/v1/mail", [:])
                #expect(mail.status == 405 && mail.headers["Allow"] == ["GET"], "\(method): \(mail)")
                let nothing = try await TestClient.perform(method, nodes[0].url + "/v1/nothing", [:])
                #expect(nothing.problem == "not-found", "\(method): \(nothing)")
                for reply in [mail, nothing] { #expect(reply.headers["Cache-Control"] == ["no-store"]) }
            }
        }
    }

    @Test("the signature covers X-Time as it was sent, with its leading zeros")
    func leadingZeros() async throws {
        try await withNodes { nodes, _ in
            let alice = try await TestClient(nodes[0].url, "alice")
            let (target, nonce) = ("/v1/mail?wait=0", UUID().uuidString)
            let time = "00\(Int(Date().timeIntervalSince1970 * 1000))"
            let signature = TestClient.signature(
                token: alice.token, ["GET", target, alice.session, time, nonce], body: [])
            let reply = try await TestClient.perform(
                "GET", nodes[0].url + target,
                ["X-Session": alice.session, "X-Time": time, "X-Nonce": nonce, "X-Signature": signature])
            #expect(reply.status == 200, "\(reply)")
        }
    }

    @Test("a header that is too large is refused")
    func header() async throws {
        try await withNodes { nodes, _ in
            let large = String(repeating: "x", count: 40 * 1024)
            for line in ["X-Large: \(large)\r\n", (0..<200).map { "X-\($0): 1\r\n" }.joined()] {
                let answer = try await Self.answer(nodes[0], "GET /v1/mail HTTP/1.1\r\nHost: gateway\r\n\(line)\r\n")
                #expect(answer.isEmpty || answer.hasPrefix("HTTP/1.1 400 "), "\(answer.prefix(200))")
            }
        }
    }
}

/// The pages and files that the stand-alone program serves beside the calls.
@Suite("Files and operators' pages")
struct PageTests {
    @Test("a file has the type of its own name, and no link leaves the folder")
    func files() async throws {
        try await withLocalRedis { server in
            let files = FileManager.default
            let folder = files.temporaryDirectory.appendingPathComponent(UUID().uuidString)
            let served = folder.appendingPathComponent("served")
            try files.createDirectory(at: served, withIntermediateDirectories: true)
            defer { try? files.removeItem(at: folder) }
            try Data("secret".utf8).write(to: folder.appendingPathComponent("secret.txt"))
            try Data("text".utf8).write(to: served.appendingPathComponent("a.txt"))
            try files.createSymbolicLink(
                at: served.appendingPathComponent("out.txt"),
                withDestinationURL: folder.appendingPathComponent("secret.txt"))
            try files.createSymbolicLink(
                at: served.appendingPathComponent("up"), withDestinationURL: folder)
            try files.createSymbolicLink(
                at: served.appendingPathComponent("b.txt"), withDestinationURL: served.appendingPathComponent("a.txt"))
            let node = try GatewayProcess.node(server, ["--static-folder", served.path])
            let url = try await node.url()
            for path in ["/a.txt%00.html", "/out.txt", "/up/secret.txt", "/up/", "//a.txt"] {
                #expect(try await fetch(url + path).status == 404, "\(path)")
            }
            for path in ["/a.txt", "/b.txt"] {
                let reply = try await TestClient.perform("GET", url + path, [:])
                #expect(
                    reply.status == 200 && reply.headers["Content-Type"].first?.hasPrefix("text/plain") == true,
                    "\(reply)")
                #expect(reply.headers["X-Content-Type-Options"] == ["nosniff"])
            }
        }
    }

    @Test("the operations address answers only names of this machine, and closes an unfinished header")
    func operations() async throws {
        try await withLocalRedis { server in
            let node = try GatewayProcess.node(server, ["--admin-key", "a key of the operators"])
            let url = try await node.url("operations")
            for (host, status) in [
                ("evil.example", 421), ("evil.example:9090", 421), ("127.0.0.1.evil.example", 421),
                ("localhost:9090", 200),
                ("127.0.0.1", 200), ("[::1]:9090", 200),
            ] {
                let reply = try await TestClient.perform("GET", url + "/admin", ["Host": host])
                #expect(reply.status == status, "\(host)")
            }
            #expect(try await fetch(url + "/v1/mail").status == 404)
            let port = try #require(URL(string: url)?.port)
            let rest = try await withRawConnection(port: port) { connection in
                try await connection.write("GET /admin HTTP/1.1\r\nHost: localhost\r\n")
                return try await connection.readToEnd()
            }
            #expect(rest == [])
        }
    }

    @Test("a holder that is no text releases nothing", arguments: ["null", "1", "[]", "{}", "false"])
    func holder(json: String) throws {
        let action = try JSONParser.parse(Array(#"{"action":"release","resource":"a","holder":\#(json)}"#.utf8))
        #expect(DashboardAction(action) == nil)
        #expect(DashboardAction(["action": "release", "resource": "a"]) == .release(resource: "a", holder: nil))
    }
}
