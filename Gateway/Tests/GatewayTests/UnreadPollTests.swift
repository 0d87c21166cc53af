import NIOCore
import QueueListen
import Testing

@testable import Gateway

/// Polls whose replies nobody reads.
@Suite("Unread polls")
struct UnreadPollTests {
    /// Begins polls one after the other whose replies are not read, until as many are held as a number, and runs a function
    /// meanwhile.
    private static func hold(
        _ count: Int, _ node: TestNode, _ client: TestClient, _ function: @Sendable () async throws -> Void
    ) async throws {
        guard node.gateway.polls.count < count else { return try await function() }
        try await withRawConnection(port: node.port, receiveBuffer: 4096) { connection in
            try await connection.channel.setOption(.autoRead, value: false).get()
            try await connection.write(poll(client))
            connection.channel.read()
            let head = try #require(try await connection.readHead())
            #expect(head.hasPrefix("HTTP/1.1 200 "))
            try await hold(count, node, client, function)
        }
    }

    private static func poll(_ client: TestClient) -> String {
        let target = "/v1/mail?wait=0"
        let headers = client.headers("GET", target).map { "\($0.name): \($0.value)\r\n" }.joined()
        return "GET \(target) HTTP/1.1\r\nHost: gateway\r\n\(headers)\r\n"
    }

    @Test("of 150 unread polls of one session the node holds as many replies as allowed, and refuses the others")
    func bounded() async throws {
        try await withNodes(configure: {
            $0.sendBufferBytes = 8192
            // The replies are held as long as the test lasts.
            $0.maxWriteTime = .seconds(600)
        }) { nodes, _ in
            let alice = try await TestClient(nodes[0].url, "alice")
            let (body, count, polls) = (String(repeating: "x", count: 100_000), 20, nodes[0].gateway.polls)
            for _ in 0..<count { try await nodes[0].office.send(body, to: "alice") }
            let max = nodes[0].gateway.configuration.maxPollsOfSession
            try await Self.hold(max, nodes[0], alice) {
                for _ in max..<150 {
                    let head = try await withRawConnection(port: nodes[0].port) { connection in
                        try await connection.write(Self.poll(alice))
                        return try await connection.readHead()
                    }
                    #expect(head?.hasPrefix("HTTP/1.1 429 ") == true, "\(head ?? "nothing")")
                }
                #expect(polls.count == max)
            }
            try await until("the polls have ended") { polls.count == 0 }
            // A reply is bounded by its size too: the rest comes with the next polls.
            var (texts, cursor) = (0, alice.cursor)
            for _ in 0..<count {
                let page = try await alice.mail(after: cursor, "&limit=1000")
                #expect(page.texts.count <= 3, "a page has at most 256 KiB of messages")
                (texts, cursor) = (texts + page.texts.count, page.cursor)
            }
            #expect(texts == count)
        }
    }
}
