import Foundation
import Hiredis
import QueueListen
import RedisDCTesting
import Testing

@testable import Gateway

/// Streams and polls of a session that ends at another node. No sign of life checks the session while these tests run.
@Suite("Ends of sessions", .timeLimit(.minutes(10)))
struct SessionEndTests {
    private func withTwoNodes(_ body: @escaping @Sendable ([TestNode]) async throws -> Void) async throws {
        try await withNodes(2, configure: { $0.keepAliveInterval = .seconds(3600) }) { nodes, _ in
            try await until("the nodes are subscribed") {
                let reply = try await nodes[0].redis.send("PUBSUB", "NUMSUB", .string(nodes[0].channel)).array
                return reply?.last?.integer == 2
            }
            try await body(nodes)
        }
    }

    /// Ends the session of a client as a node does that dies before it has told the mailbox.
    private func end(_ client: TestClient, isLogout: Bool, at node: TestNode) async throws {
        let sessions = node.gateway.sessions
        if isLogout {
            try await sessions.logout(user: client.user, device: client.device)
        } else {
            _ = try await sessions.login(user: client.user, device: client.device, lifetime: .seconds(60))
        }
    }

    @Test("an idle stream of another node ends with its session", arguments: [true, false])
    func events(isLogout: Bool) async throws {
        try await withTwoNodes { nodes in
            let alice = try await TestClient(nodes[0].url, "alice")
            let tablet = try await TestClient(nodes[0].url, "alice", device: "tablet")
            var events = try await TestEvents(alice).makeAsyncIterator()
            var others = try await TestEvents(tablet).makeAsyncIterator()
            let socket = try await TestSocket.open(alice)
            #expect(try await events.next()?.name == "superseded")
            try await end(alice, isLogout: isLogout, at: nodes[1])
            if !isLogout { #expect(try await socket.json()?["superseded"] != nil) }
            #expect(try await socket.closeCode() == (isLogout ? 4001 : 4002))
            // The user's other devices stay.
            _ = try await tablet.send(["x"], to: ["alice"])
            #expect(try await others.next()?.data["text"] == "x")
            try await end(tablet, isLogout: isLogout, at: nodes[1])
            let last = try await others.next()
            #expect(last?.name == (isLogout ? "bye" : "superseded"))
            #expect(last?.data["reason"] == (isLogout ? "expired" : nil))
            #expect(try await others.next() == nil)
        }
    }

    @Test("a poll of another node ends with its session", arguments: [true, false])
    func poll(isLogout: Bool) async throws {
        try await withTwoNodes { nodes in
            let alice = try await TestClient(nodes[0].url, "alice")
            async let poll = alice.mail(after: alice.cursor, wait: 60)
            try await until("the poll waits") {
                try await nodes[0].office.mailbox("alice").inspect()?.listeningProcesses == 1
            }
            try await end(alice, isLogout: isLogout, at: nodes[1])
            let reply = try await poll
            if isLogout {
                #expect(reply.status == 401 && reply.problem == "unknown-session")
            } else {
                #expect(reply.body["status"] == "superseded" && reply.texts.isEmpty && reply.cursor == alice.cursor)
            }
        }
    }

    @Test("a logout does not end the polls of a login of the same device that comes meanwhile")
    func loginDuringLogout() async throws {
        try await withLocalRedis { server in
            try await withFaultProxy(to: .port(server.port)) { proxy in
                // Each step of the logout takes 10 ms, so that the login may come between any two.
                await proxy.delay(.milliseconds(5))
                let url = "redis://127.0.0.1:\(proxy.port)"
                try await withNodes(on: server, url: url) { slow, server in
                    try await withNodes(on: server) { fast, _ in
                        for round in 0..<100 {
                            let old = try await TestClient(fast[0].url, "alice")
                            async let logout = old.at(slow[0].url).call("DELETE", "/v1/sessions")
                            try await Task.sleep(for: .microseconds(Int.random(in: 0..<80_000)))
                            let new = try await TestClient(fast[0].url, "alice")
                            async let poll = new.mail(after: new.cursor, wait: 60)
                            let status = try await logout.status
                            #expect(status == 204 || status == 401)
                            try await fast[0].office.send("\(round)", to: "alice")
                            let reply = try await poll
                            #expect(reply.texts == ["\(round)"], "round \(round), logout \(status): \(reply)")
                            #expect(try await new.ack(reply.cursor).status == 204)
                        }
                    }
                }
            }
        }
    }

    @Test("a stream that is writing while its session ends ends after the write, and its device stays forgotten")
    func writing() async throws {
        try await withTwoNodes { nodes in
            let alice = try await TestClient(nodes[0].url, "alice")
            let body = String(repeating: "x", count: 200_000)
            for _ in 0..<100 { try await nodes[0].office.send(body, to: "alice") }
            // Its client does not read, so that the stream writes and does not wait for messages.
            var events = try await TestEvents(alice).makeAsyncIterator()
            let mailbox = try nodes[0].office.mailbox("alice")
            try await until("the stream is writing, and reads no more") {
                let seen = try await mailbox.devices().first?.lastSeen ?? .now
                return seen.timeIntervalSinceNow < -0.3
            }
            #expect(try await alice.at(nodes[1].url).call("DELETE", "/v1/sessions").status == 204)
            var last: TestEvents.Event?
            while let event = try await events.next() { last = event }
            #expect(last?.name == "bye" && last?.data["reason"] == "expired")
            #expect(try await mailbox.devices().isEmpty)
        }
    }

    private func untilListening(to mailbox: Mailbox) async throws {
        try await until("the node waits for a message") { try await mailbox.inspect()?.listeningProcesses == 1 }
    }

    /// Ends the session of a client, and lets the device be forgotten, without telling the nodes: they are held up.
    private func endUnheard(_ client: TestClient, _ node: TestNode) async throws {
        let keys = try await node.redis.send("KEYS", "gw:*").array ?? []
        for key in keys.compactMap(\.string) where key.contains(":session:") || key.contains(":device:") {
            _ = try await node.redis.send("DEL", .string(key))
        }
        #expect(try await node.office.mailbox(client.user).forget(device: client.device))
    }

    @Test("a node that has not heard of a logout makes no device known again, whatever reads or acknowledges")
    func heldUp() async throws {
        try await withTwoNodes { nodes in
            let mailbox = try nodes[0].office.mailbox("alice")
            // A wake-up does not contain so long a message: the node reads.
            let long = String(repeating: "x", count: 5000)
            for reading in ["events", "socket", "poll", "acknowledgement"] {
                let alice = try await TestClient(nodes[0].url, "alice")
                try await nodes[0].office.send("first", to: "alice")
                let cursor = try await alice.mail().cursor
                switch reading {
                case "events":
                    var events = try await TestEvents(alice).makeAsyncIterator()
                    #expect(try await events.next()?.data["text"] == "first")
                    try await endUnheard(alice, nodes[0])
                    try await nodes[0].office.send(long, to: "alice")
                    let last = try await events.next()
                    #expect(last?.name == "bye" && last?.data["reason"] == "expired")
                case "socket":
                    let socket = try await TestSocket.open(alice, after: cursor)
                    try await untilListening(to: mailbox)
                    try await endUnheard(alice, nodes[0])
                    try await nodes[0].office.send(long, to: "alice")
                    #expect(try await socket.closeCode() == 4001)
                case "poll":
                    async let poll = alice.mail(after: cursor, wait: 60)
                    try await untilListening(to: mailbox)
                    try await endUnheard(alice, nodes[0])
                    try await nodes[0].office.send(long, to: "alice")
                    #expect(try await poll.problem == "unknown-session")
                default:
                    let socket = try await TestSocket.open(alice, after: cursor)
                    try await untilListening(to: mailbox)
                    try await endUnheard(alice, nodes[0])
                    try await socket.send(["ack": .string(cursor)])
                    #expect(try await socket.json()?["error"]?["type"] == "urn:redisdc:unknown-session")
                }
                #expect(try await mailbox.devices().isEmpty, "\(reading)")
                try await mailbox.delete()
            }
        }
    }

    @Test("a session goes on after its device was lost: it is made known again", arguments: [true, false])
    func deviceLost(isForgotten: Bool) async throws {
        try await withTwoNodes { nodes in
            let mailbox = try nodes[0].office.mailbox("alice")
            let alice = try await TestClient(nodes[0].url, "alice")
            try await nodes[0].office.send("first", to: "alice")
            var events = try await TestEvents(alice).makeAsyncIterator()
            let first = try #require(try await events.next())
            #expect(first.data["text"] == "first")
            // By a read of the stream, which a deletion wakes up.
            if isForgotten {
                try await mailbox.forget(device: "phone")
                try await nodes[0].office.send(String(repeating: "x", count: 5000), to: "alice")
            } else {
                try await mailbox.delete()
            }
            #expect(try await events.next()?.name == (isForgotten ? "message" : "gap"))
            #expect(try await mailbox.devices().map(\.name) == ["phone"])
            // By an acknowledgement.
            try await mailbox.forget(device: "phone")
            #expect(try await alice.ack(first.id).status == (isForgotten ? 204 : 409))
            #expect(try await mailbox.devices().map(\.name) == ["phone"])
        }
    }

    @Test("a login that is held up until its session has ended leaves no device")
    func lateRegistration() async throws {
        try await withTwoNodes { nodes in
            let (gateway, mailbox) = (nodes[0].gateway, try nodes[0].office.mailbox("alice"))
            let new = try await gateway.sessions.login(user: "alice", device: "phone", lifetime: .seconds(60))
            try await nodes[1].gateway.logout(Caller(user: "alice", device: "phone"))
            let problem = await #expect(throws: Problem.self) {
                _ = try await gateway.register(mailbox.reader(device: "phone"), of: new.session)
            }
            #expect(problem?.kind == .unknownSession)
            #expect(try await mailbox.devices().isEmpty)
        }
    }

    @Test("an application ends the session of one device, at all nodes")
    func application() async throws {
        try await withTwoNodes { nodes in
            let alice = try await TestClient(nodes[0].url, "alice")
            let tablet = try await TestClient(nodes[0].url, "alice", device: "tablet")
            var events = try await TestEvents(alice).makeAsyncIterator()
            for _ in 0..<2 { try await nodes[1].gateway.logout(Caller(user: "alice", device: alice.device)) }
            #expect(try await events.next()?.name == "bye")
            #expect(try await alice.call("GET", "/v1/mail?wait=0").status == 401)
            #expect(try await tablet.call("GET", "/v1/mail?wait=0").status == 200)
            _ = try await nodes[0].redis.send("ACL", "SETUSER", "default", "-get")
            let error = await #expect(throws: RedisError.self) {
                try await nodes[1].gateway.logout(Caller(user: "alice", device: tablet.device))
            }
            #expect(error?.code == .notPermitted)
        }
    }

    @Test("a session that has ended while the node was not subscribed ends its streams when it is again")
    func lostPublication() async throws {
        try await withTwoNodes { nodes in
            let alice = try await TestClient(nodes[0].url, "alice")
            let socket = try await TestSocket.open(alice)
            let redis = nodes[0].redis
            _ = try await redis.send("ACL", "SETUSER", "default", "resetchannels")
            try await until("nobody is subscribed") {
                try await redis.send("PUBSUB", "NUMSUB", .string(nodes[0].channel)).array?.last?.integer == 0
            }
            try await end(alice, isLogout: true, at: nodes[1])
            #expect(nodes[0].gateway.openStreams == 1)
            _ = try await redis.send("ACL", "SETUSER", "default", "allchannels")
            #expect(try await socket.closeCode() == 4001)
        }
    }
}

extension TestNode {
    /// The channel of ended sessions.
    fileprivate var channel: String { gateway.sessions.endedChannel }
}
