import Foundation
import Hiredis
import RedisDCTesting
import Testing

@testable import Gateway

@Suite("Rights")
struct RightsTests {
    /// The words of the user's rule in SECURITY.md.
    private func rule() throws -> [String] {
        let page = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../../SECURITY.md")
        let text = try String(contentsOf: page, encoding: .utf8).replacingOccurrences(of: "\\\n", with: " ")
        let line = try #require(text.split(separator: "\n").first { $0.hasPrefix("ACL SETUSER gateway ") })
        return line.split(separator: " ").map(String.init)
    }

    @Test("all calls run as the user of SECURITY.md, and the server refuses nothing")
    func documentedUser() async throws {
        try await withLocalRedis { server in
            try await withRedisClient(url: server.url) { admin in
                let rule = try rule()
                _ = try await admin.send(RedisCommand(rule.map { .string($0) }))
                let password = try #require(rule.first { $0.hasPrefix(">") }).dropFirst()
                let url = "redis://gateway:\(password)@127.0.0.1:\(server.port)"
                try await withNodes(2, on: server, url: url, configure: { $0.requestsPerSecond = 50 }) { nodes, _ in
                    let alice = try await TestClient(nodes[0].url, "alice")
                    let bob = try await TestClient(nodes[1].url, "bob")
                    for number in 0..<65 { _ = try await TestClient(nodes[0].url, "carol", device: "d\(number)") }
                    _ = try await TestClient(nodes[1].url, "carol", device: "d64")
                    var events = try await TestEvents(alice).makeAsyncIterator()
                    let socket = try await TestSocket.open(bob)
                    #expect(try await alice.send(["x"], to: ["alice", "bob"]).status == 200)
                    let cursor = try #require(try await events.next()).id
                    #expect(try await socket.json()?["messages"]?.array?.count == 1)
                    #expect(try await alice.ack(cursor).status == 204)
                    #expect(try await bob.mail().texts == ["x"])
                    #expect(try await bob.call("DELETE", "/v1/sessions").status == 204)
                }
                #expect(try await admin.send("ACL", "LOG").array?.isEmpty == true)
            }
        }
    }
}
