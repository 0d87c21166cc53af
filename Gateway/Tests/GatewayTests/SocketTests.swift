import NIOHTTP1
import NIOWebSocket
import QueueListen
import RedisDCTesting
import ServiceLifecycle
import Testing

@testable import Gateway

@Suite("Sockets")
struct SocketTests {
    private func texts(_ json: JSON?) -> [String] {
        (json?["messages"]?.array ?? []).compactMap { $0["text"]?.string }
    }

    @Test("a socket delivers pages, sends and acknowledges")
    func delivers() async throws {
        try await withNodes(2) { nodes, _ in
            let alice = try await TestClient(nodes[0].url, "alice")
            let bob = try await TestClient(nodes[1].url, "bob")
            _ = try await bob.send(["1", "2"], to: ["alice"])
            let socket = try await TestSocket.open(alice)
            let page = try await socket.json()
            #expect(texts(page) == ["1", "2"])
            #expect(page?["cursor"] == page?["messages"]?.array?[1]["cursor"])
            _ = try await bob.send(["3"], to: ["alice"])
            let second = try await socket.json()
            #expect(texts(second) == ["3"])
            #expect(try await nodes[0].office.mailbox("alice").count == 3)
            let cursor = try #require(second?["cursor"])
            try await socket.send(["ack": cursor])
            #expect(try await socket.json() == ["acked": cursor])
            #expect(try await nodes[0].office.mailbox("alice").count == 0)
            try await socket.send(["ack": "nonsense"])
            let refused = try await socket.json()
            #expect(refused?["error"]?["type"] == "urn:redisdc:malformed" && refused?["ack"] == "nonsense")
            try await socket.send(["send": ["to": ["bob"], "id": "s1", "messages": [["json": [1]]]]])
            #expect(try await socket.json() == ["sent": ["id": "s1", "indices": ["bob": [1, 1]]]])
            #expect(try await bob.mail().body["messages"]?.array?[0]["from"] == "alice")
            try await socket.send(["send": ["to": ["bob"], "id": "s1", "messages": [["json": [2]]]]])
            let conflict = try await socket.json()
            #expect(conflict?["error"]?["type"] == "urn:redisdc:id-used" && conflict?["id"] == "s1")
            // Resumes where the client says.
            let next = try await TestSocket.open(alice.at(nodes[1].url), after: cursor.string)
            _ = try await bob.send(["4"], to: ["alice"])
            #expect(texts(try await next.json()) == ["4"])
        }
    }

    @Test("an upgrade needs the subprotocol and an allowed origin")
    func upgrade() async throws {
        try await withNodes(configure: { $0.allowedOrigins = ["https://chat.example"] }) { nodes, _ in
            await #expect(throws: TestSocket.Refused.self) { try await TestSocket(nodes[0].url, subprotocol: nil) }
            await #expect(throws: TestSocket.Refused.self) { try await TestSocket(nodes[0].url, subprotocol: "ql.v2") }
            await #expect(throws: TestSocket.Refused.self) {
                try await TestSocket(nodes[0].url, origin: "https://evil.example")
            }
            await #expect(throws: TestSocket.Refused.self) { try await TestSocket(nodes[0].url, target: "/v1/events") }
            let socket = try await TestSocket(nodes[0].url, origin: "https://chat.example")
            try await socket.close()
            // A refused upgrade is answered.
            let upgrade: HTTPHeaders = [
                "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
                "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
            ]
            let refused = try await TestClient.perform("GET", nodes[0].url + "/v1/socket", upgrade)
            #expect(refused.status == 400 && refused.problem == "malformed")
            var foreign = upgrade
            foreign.add(name: "Origin", value: "https://evil.example")
            foreign.add(name: "Sec-WebSocket-Protocol", value: "ql.v1")
            #expect(try await TestClient.perform("GET", nodes[0].url + "/v1/socket", foreign).problem == "origin")
        }
    }

    @Test("the first frame must authenticate, with a signature for this upgrade that was not used before")
    func authentication() async throws {
        try await withNodes(2) { nodes, _ in
            let alice = try await TestClient(nodes[0].url, "alice")
            _ = try await alice.send(["secret"], to: ["alice"])
            func open(_ first: JSON, target: String = "/v1/socket", node: Int = 0) async throws -> (JSON?, Int?) {
                let socket = try await TestSocket(nodes[node].url, target: target)
                try await socket.send(first)
                return (try await socket.json(), try await socket.closeCode())
            }
            let (target, other) = ("/v1/socket", "/v1/socket?after=x")
            for (first, target, problem) in [
                (["send": [:]], target, "malformed"), (["auth": [:]], target, "malformed"),
                (TestSocket.authentication(alice, target: other), target, "bad-signature"),
                (TestSocket.authentication(alice, target: target), other, "bad-signature"),
                (TestSocket.authentication(alice, target: target, time: 1), target, "stale"),
            ] as [(JSON, String, String)] {
                let (reply, code) = try await open(first, target: target)
                #expect(reply?["error"]?["type"]?.string == "urn:redisdc:\(problem)")
                #expect(code == 1008 && reply?["messages"] == nil)
            }
            let first = TestSocket.authentication(alice, target: target)
            let socket = try await TestSocket(nodes[0].url)
            try await socket.send(first)
            #expect(try await socket.json()?["ready"] != nil)
            let (replay, code) = try await open(first, node: 1)
            #expect(replay?["error"]?["type"] == "urn:redisdc:nonce-used" && code == 1008)
            _ = try await alice.call("DELETE", "/v1/sessions")
            let (ended, endCode) = try await open(TestSocket.authentication(alice, target: target))
            #expect(ended?["error"]?["type"] == "urn:redisdc:unknown-session" && endCode == 4001)
        }
    }

    @Test("a cookie does not authenticate a socket")
    func cookie() async throws {
        try await withNodes { nodes, _ in
            let alice = try await TestClient(nodes[0].url, "alice")
            let secret = try #require(alice.cookie.split(separator: "=").last.map(String.init))
            let socket = try await TestSocket(nodes[0].url, headers: ["Cookie": alice.cookie])
            try await socket.send(["auth": ["session": .string(alice.session), "cookie": .string(secret)]])
            #expect(try await socket.json()?["error"]?["type"] == "urn:redisdc:malformed")
            #expect(try await socket.closeCode() == 1008)
        }
    }

    @Test("a socket goes on after an outage of Redis; a send meanwhile fails and can be repeated")
    func redisAway() async throws {
        try await withLocalRedis(.init(persistence: .appendOnly(fsync: .always))) { server in
            try await withNodes(on: server) { nodes, _ in
                let (alice, bob) = (
                    try await TestClient(nodes[0].url, "alice"), try await TestClient(nodes[0].url, "bob")
                )
                _ = try await alice.send(["1"], to: ["alice"])
                let socket = try await TestSocket.open(alice)
                #expect(try await socket.json()?["messages"]?.array?.first?["text"] == "1")
                let poll = Task { try await bob.call("GET", "/v1/mail?wait=60") }
                try await until("the poll waits") {
                    try await nodes[0].office.mailbox("bob").inspect()?.listeningProcesses == 1
                }
                await server.kill()
                let send: JSON = ["send": ["to": ["alice", "bob"], "id": "2", "messages": [["text": "2"]]]]
                try await socket.send(send)
                let failed = try await socket.json()
                #expect(failed?["error"]?["type"] == "urn:redisdc:unavailable" && failed?["id"] == "2")
                #expect(failed?["error"]?["mayHaveRun"] != nil)
                try await server.restart()
                var texts: [String] = []
                var isSent = false
                while !isSent || texts.isEmpty {
                    if !isSent { try await socket.send(send) }
                    let json = try #require(try await socket.json(), "the socket has ended")
                    isSent = isSent || json["sent"]?["id"] == "2"
                    texts += (json["messages"]?.array ?? []).compactMap { $0["text"]?.string }
                }
                #expect(texts == ["2"])
                // The poll waits for Redis, or tells its client to repeat it.
                let polled = try await poll.value
                #expect(polled.status == 200 ? polled.texts == ["2"] : polled.problem == "unavailable", "\(polled)")
                #expect(try await bob.mail().texts == ["2"])
            }
        }
    }

    @Test("a socket that does not authenticate in time is closed")
    func silent() async throws {
        // TestSocket loses the frame if the connection ends before the client's pipeline is one of frames.
        try await withNodes(configure: { $0.authenticationTime = .milliseconds(50) }) { nodes, _ in
            let frames = try await withUpgradedSocket(nodes[0]) { try await $0.rest() }
            #expect(frames == [RawSocket.Frame(opcode: 8, payload: [0x03, 0xF0])])
        }
    }

    @Test("a newer stream of the device closes the socket with 4002, a logout with 4001")
    func superseded() async throws {
        try await withNodes(2) { nodes, _ in
            let alice = try await TestClient(nodes[0].url, "alice")
            let first = try await TestSocket.open(alice)
            try await until("the first waits") {
                try await nodes[0].office.mailbox("alice").inspect()?.listeningProcesses == 1
            }
            let second = try await TestSocket.open(alice.at(nodes[1].url))
            #expect(try await first.json()?["superseded"]?["cursor"] != nil)
            #expect(try await first.closeCode() == 4002)
            _ = try await alice.send(["x"], to: ["alice"])
            #expect(texts(try await second.json()) == ["x"])
            _ = try await alice.call("DELETE", "/v1/sessions")
            #expect(try await second.closeCode() == 4001)
        }
    }

    @Test("a graceful shutdown says when to reconnect and closes with 1001")
    func shutdown() async throws {
        try await withNodes { nodes, _ in
            let alice = try await TestClient(nodes[0].url, "alice")
            let socket = try await TestSocket.open(alice)
            await nodes[0].services.triggerGracefulShutdown()
            let bye = try await socket.json()
            #expect(bye?["bye"]?["reason"] == "restart")
            #expect((100...3000).contains(bye?["bye"]?["retry"]?.integer ?? 0))
            #expect(try await socket.closeCode() == 1001)
        }
    }

    @Test("fragments and control frames between them make one message")
    func fragments() async throws {
        try await withNodes { nodes, _ in
            let alice = try await TestClient(nodes[0].url, "alice")
            let socket = try await TestSocket.open(alice)
            let ack = RawSocket.echo("nothing").utf8
            try await socket.send(.text, Array(ack.prefix(3)), fin: false)
            try await socket.send(.ping, [1, 2, 3])
            #expect(try await socket.next() == .pong([1, 2, 3]))
            try await socket.send(.continuation, Array(ack.dropFirst(3).prefix(1)), fin: false)
            try await socket.send(.continuation, Array(ack.dropFirst(4)))
            #expect(try await socket.json()?["ack"] == "nothing")
            // A character that is split between two fragments.
            let send: JSON = ["send": ["to": ["bob"], "id": "1", "messages": [["text": "ü"]]]]
            let at = try #require(send.bytes.firstIndex(of: 0xC3)) + 1
            try await socket.send(.text, Array(send.bytes[..<at]), fin: false)
            try await socket.send(.continuation, Array(send.bytes[at...]))
            #expect(try await socket.json()?["sent"]?["id"] == "1")
            try await socket.send(.connectionClose, [0x03, 0xE8])
            #expect(try await socket.next() == .close(1000))
        }
    }

    @Test("each violation of the protocol has its close code, and other sockets stay open")
    func violations() async throws {
        try await withNodes(configure: { $0.maxBodyBytes = 1000 }) { nodes, _ in
            let alice = try await TestClient(nodes[0].url, "alice")
            let bob = try await TestClient(nodes[0].url, "bob")
            let other = try await TestSocket.open(bob)
            func code(_ frames: [(WebSocketOpcode, [UInt8], fin: Bool, isMasked: Bool)]) async throws -> Int? {
                let socket = try await TestSocket.open(alice)
                for frame in frames {
                    // The gateway may have closed after the first of them.
                    try? await socket.send(frame.0, frame.1, fin: frame.fin, isMasked: frame.isMasked)
                }
                return try await socket.closeCode()
            }
            let half = [UInt8](repeating: 32, count: 600)
            #expect(try await code([(.text, [0xFF], true, true)]) == 1007)
            #expect(try await code([(.text, [0xC3], false, true), (.continuation, [0x28], true, true)]) == 1007)
            #expect(try await code([(.binary, [1], true, true)]) == 1003)
            #expect(try await code([(.text, Array("{}".utf8), true, false)]) == 1002)
            #expect(try await code([(.continuation, [], true, true)]) == 1002)
            #expect(try await code([(.text, [], false, true), (.text, [], true, true)]) == 1002)
            #expect(try await code([(.ping, [], false, true)]) == 1002)
            #expect(try await code([(.connectionClose, [3], true, true)]) == 1002)
            #expect(try await code([(.connectionClose, [0x03, 0xED], true, true)]) == 1002)
            #expect(try await code([(.text, half, false, true), (.continuation, half, true, true)]) == 1009)
            #expect(try await code([(.text, half + half, true, true)]) == 1009)
            #expect(try await code([(.text, Array("{".utf8), true, true)]) == 1008)
            #expect(try await code([(.text, Array("{\"other\":1}".utf8), true, true)]) == 1008)
            try await other.send(["send": ["to": ["bob"], "id": "1", "messages": [["text": "still here"]]]])
            var seen: [JSON?] = []
            for _ in 0..<2 { seen.append(try await other.json()) }
            #expect(seen.contains { $0?["sent"] != nil } && seen.contains { texts($0) == ["still here"] })
        }
    }

    @Test("a client that does not even answer pings is closed; one that does stays")
    func halfOpen() async throws {
        try await withNodes(configure: {
            $0.keepAliveInterval = .milliseconds(50)
            // Long enough that a busy machine answers a ping in time.
            $0.maxSilence = .seconds(10)
        }) { nodes, _ in
            let alice = try await TestClient(nodes[0].url, "alice")
            let bob = try await TestClient(nodes[0].url, "bob")
            let (silent, alive) = (try await TestSocket.open(alice), try await TestSocket.open(bob))
            let answering = Task {
                for _ in 0..<1000 {
                    guard case .ping = try await alive.next() else { return false }
                    try await alive.send(.pong, [])
                    if nodes[0].gateway.openStreams == 1 { return true }
                }
                return false
            }
            #expect(try await silent.closeCode() == 1001)
            #expect(try await answering.value)
        }
    }
}
