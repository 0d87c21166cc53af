import Hiredis
import NIOCore
import QueueListen
import Testing

@testable import Gateway

@Suite("Polls", .timeLimit(.minutes(10)))
struct PollTests {
    private func untilListening(_ node: TestNode, _ count: Int = 1) async throws {
        try await until("the poll waits") {
            try await node.office.mailbox("alice").inspect()?.listeningProcesses == count
        }
    }

    /// The text of a poll's request.
    private func request(_ client: TestClient, _ target: String) -> String {
        let headers = client.headers("GET", target).map { "\($0.name): \($0.value)\r\n" }.joined()
        return "GET \(target) HTTP/1.1\r\nHost: gateway\r\n\(headers)\r\n"
    }

    @Test("a poll whose client has gone ends, and neither acknowledges nor takes anything", arguments: [true, false])
    func clientGone(isHalfClosed: Bool) async throws {
        try await withNodes { nodes, _ in
            let alice = try await TestClient(nodes[0].url, "alice")
            try await withRawConnection(port: nodes[0].port) { connection in
                try await connection.write(request(alice, "/v1/mail?wait=60"))
                try await untilListening(nodes[0])
                if isHalfClosed {
                    try await connection.channel.close(mode: .output)
                    // The poll is answered before its time, and nothing follows.
                    let answer = String(decoding: try await connection.readToEnd(), as: UTF8.self)
                    #expect(answer.isEmpty || answer.hasPrefix("HTTP/1.1 503"), "\(answer)")
                }
            }
            try await until("the poll has ended", within: .seconds(30)) { nodes[0].gateway.watch.sessions.isEmpty }
            _ = try await alice.send(["x"], to: ["alice"])
            let mailbox = try nodes[0].office.mailbox("alice")
            #expect(try await mailbox.count == 1)
            #expect(try await alice.mail().texts == ["x"])
            #expect(try await mailbox.devices().first?.acknowledged.index == 0)
        }
    }

    @Test("a second poll of the device, at any node, ends the first as superseded", arguments: [0, 1])
    func secondPoll(node: Int) async throws {
        try await withNodes(2) { nodes, _ in
            let alice = try await TestClient(nodes[0].url, "alice")
            _ = try await alice.send(["1"], to: ["alice"])
            let position = try await alice.mail().cursor
            async let first = alice.mail(after: position, wait: 60)
            try await untilListening(nodes[0])
            async let second = alice.at(nodes[node].url).mail(after: position, wait: 60)
            let superseded = try await first
            #expect(superseded.status == 200 && superseded.body["status"] == "superseded")
            // It has received nothing, and keeps its position.
            #expect(superseded.texts.isEmpty && superseded.cursor == position)
            _ = try await alice.send(["2"], to: ["alice"])
            let reply = try await second
            #expect(reply.body["status"] == "messages" && reply.texts == ["2"])
        }
    }

    @Test("a poll and a stream of one device supersede one another")
    func stream() async throws {
        try await withNodes(2) { nodes, _ in
            let alice = try await TestClient(nodes[0].url, "alice")
            async let poll = alice.mail(wait: 60)
            try await untilListening(nodes[0])
            var events = try await TestEvents(alice.at(nodes[1].url)).makeAsyncIterator()
            #expect(try await poll.body["status"] == "superseded")
            #expect(try await alice.mail().body["status"] == "timedOut")
            #expect(try await events.next()?.name == "superseded")
        }
    }

    @Test("a poll ends with its session, and delivers nothing that comes later")
    func expiry() async throws {
        try await withNodes(configure: { $0.sessionLifetime = .seconds(2) }) { nodes, _ in
            let alice = try await TestClient(nodes[0].url, "alice")
            async let poll = alice.mail(wait: 60)
            let key = RedisArgument.string("gw:{default:\(alice.session.prefix(2))}:session:\(alice.session)")
            try await until("the session has ended") {
                try await nodes[0].redis.send("EXISTS", key).integer == 0
            }
            try await nodes[0].office.send("late", to: "alice")
            let reply = try await poll
            #expect(reply.status == 401 && reply.problem == "unknown-session", "\(reply)")
            #expect(try await nodes[0].office.mailbox("alice").count == 1)
        }
    }

    @Test("a connection carries one poll after the other")
    func keepAlive() async throws {
        try await withNodes { nodes, _ in
            let alice = try await TestClient(nodes[0].url, "alice")
            let statuses = try await withRawConnection(port: nodes[0].port) { connection in
                var statuses: [String] = []
                for number in 0..<5 {
                    try await connection.write(request(alice, "/v1/mail?wait=\(number % 2)"))
                    let head = try #require(try await connection.readHead())
                    let length = head.lowercased().split(separator: "\r\n").first { $0.hasPrefix("content-length:") }
                    let count = Int(length?.split(separator: " ").last ?? "") ?? 0
                    let body = try #require(try await connection.read(count))
                    let reply = try JSONParser.parse(body)
                    statuses.append((reply["status"]?.string ?? reply["type"]?.string) ?? "")
                }
                return statuses
            }
            // A node that has too much to do tells its client to repeat a poll.
            let expected: Set = ["timedOut", "urn:redisdc:unavailable"]
            #expect(statuses.count == 5 && statuses.allSatisfy { expected.contains($0) }, "\(statuses)")
        }
    }
}
