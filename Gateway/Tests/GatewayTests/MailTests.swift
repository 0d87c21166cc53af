import Foundation
import NIOHTTP1
import QueueListen
import Testing

@testable import Gateway

@Suite("Mail")
struct MailTests {
    @Test("messages arrive in order, and stay until they are acknowledged")
    func acknowledge() async throws {
        try await withNodes(2) { nodes, _ in
            let bob = try await TestClient(nodes[0].url, "bob")
            let alice = try await TestClient(nodes[1].url, "alice")
            let sent = try await bob.send(["a", "b", "c"], to: ["alice"], id: "1")
            #expect(sent.status == 200)
            #expect(sent.body == ["id": "1", "indices": ["alice": [1, 3]]])
            let page = try await alice.mail()
            #expect(page.body["status"] == "messages" && page.texts == ["a", "b", "c"])
            // Reading acknowledges nothing, wherever it starts.
            #expect(try await alice.mail(after: page.cursor).body["status"] == "timedOut")
            #expect(try await alice.at(nodes[0].url).mail().texts == ["a", "b", "c"])
            let second = page.body["messages"]?.array?[1]["cursor"]?.string ?? ""
            #expect(try await alice.ack(second).status == 204)
            #expect(try await alice.at(nodes[0].url).mail().texts == ["c"])
            #expect(try await alice.ack(second).status == 204)
            // An acknowledgement with a poll.
            #expect(try await alice.mail(after: page.cursor, "&ack=\(page.cursor)").body["status"] == "timedOut")
            #expect(try await nodes[0].office.mailbox("alice").count == 0)
            // A login continues after the acknowledged position.
            #expect(try await TestClient(nodes[0].url, "alice").cursor == page.cursor)
        }
    }

    @Test("a cursor of another mailbox acknowledges nothing")
    func foreignCursor() async throws {
        try await withNodes { nodes, _ in
            let alice = try await TestClient(nodes[0].url, "alice")
            let bob = try await TestClient(nodes[0].url, "bob")
            _ = try await alice.send(["x"], to: ["alice", "bob"])
            let cursor = try await bob.mail().cursor
            let reply = try await alice.ack(cursor)
            #expect(reply.status == 409 && reply.problem == "cursor")
            #expect(try await alice.ack("nonsense").status == 400)
            #expect(try await alice.mail("&ack=\(cursor)").texts == ["x"])
            #expect(try await alice.mail(after: cursor).body["status"] == "reset")
        }
    }

    @Test("a message looks the same however it was sent, with its sender stamped on it")
    func content() async throws {
        try await withNodes { nodes, _ in
            let bob = try await TestClient(nodes[0].url, "bob")
            let number: JSON = .number("12345678901234567890.5")
            let reply = try await bob.call(
                "POST", "/v1/send",
                [
                    "to": ["alice"], "id": "1",
                    "messages": [
                        ["json": ["n": number], "type": "move", "headers": ["language": "en"]], ["text": "grüß"],
                        ["base64": "AP8="], ["text": "lost", "collapse": "k"], ["text": "kept", "collapse": "k"],
                        ["text": "brief", "ttl": 1],
                    ],
                ])
            #expect(reply.status == 200, "\(reply)")
            try await nodes[0].office.send(Message(bytes: [255]), to: "alice")
            try await nodes[0].office.send(
                try Message(json: [1], type: nil, headers: ["gateway-content": "json"]), to: "alice")
            try await nodes[0].office.send("in process", to: "alice")
            let alice = try await TestClient(nodes[0].url, "alice")
            try await until("the brief message has expired") {
                try await alice.mail().body["messages"]?.array?.count == 7
            }
            let page = try await alice.mail()
            #expect(page.body["skipped"] == 2)
            let messages = try #require(page.body["messages"]?.array)
            #expect(messages[0]["json"] == ["n": number])
            #expect(messages[0]["type"] == "move" && messages[0]["from"] == "bob")
            #expect(messages[0]["headers"] == ["language": "en"])
            #expect(messages[0]["index"] == 1 && messages[0]["text"] == nil && messages[0]["base64"] == nil)
            #expect(messages[1]["text"] == "grüß" && messages[1]["type"] == nil)
            #expect(messages[2]["base64"] == "AP8=" && messages[3]["text"] == "kept")
            #expect(messages[4]["base64"] == "/w==" && messages[4]["from"] == nil)
            #expect(messages[5]["json"] == [1])
            #expect(messages[6]["text"] == "in process")
            #expect(Set(messages.compactMap { $0["id"]?.string }).count == 7)
        }
    }

    @Test("a sender cannot be forged")
    func reservedHeaders() async throws {
        try await withNodes { nodes, _ in
            let bob = try await TestClient(nodes[0].url, "bob")
            let names = [
                "gateway-from", "Gateway-From", "gateway-content", "gateway-x", "Dead-Letter-mailbox",
                "gateway-\u{301}",
                "dead-letter-\u{200D}x",
            ]
            for name in names {
                let reply = try await bob.call(
                    "POST", "/v1/send",
                    [
                        "to": ["alice"], "id": "1",
                        "messages": [["text": "x", "headers": .object([.init(name: name, value: "carol")])]],
                    ])
                #expect(reply.status == 400 && reply.problem == "malformed")
            }
            #expect(try await nodes[0].office.mailbox("alice").count == 0)
        }
    }

    @Test("by default nobody may send; the application sees who sends to whom")
    func authorization() async throws {
        let authorize: SendAuthorization = { $0.recipients == [$0.sender] && $0.types == ["chat"] }
        try await withNodes(authorize: authorize) { nodes, _ in
            let bob = try await TestClient(nodes[0].url, "bob")
            func send(_ to: JSON, _ type: JSON) async throws -> Int {
                let message: JSON = ["text": "x", "type": type]
                return try await bob.call("POST", "/v1/send", ["to": to, "id": "1", "messages": [message]]).status
            }
            #expect(try await send(["bob"], "chat") == 200)
            #expect(try await send(["bob"], "other") == 403)
            #expect(try await send(["alice"], "chat") == 403)
            let gateway = Gateway(
                redis: nodes[0].redis, office: nodes[0].office, coordinator: nodes[0].gateway.limits.coordinator,
                authenticator: TestAuthenticator())
            let attempt = SendAttempt(sender: "bob", device: "phone", recipients: ["bob"], types: [nil])
            #expect(try await gateway.authorize(attempt) == false)
        }
    }

    @Test("a send that is repeated under its id has one effect; ids belong to their senders")
    func sendIDs() async throws {
        try await withNodes(2) { nodes, _ in
            let bob = try await TestClient(nodes[0].url, "bob")
            let carol = try await TestClient(nodes[0].url, "carol")
            #expect(try await bob.send(["a"], to: ["alice"], id: "1").body["indices"] == ["alice": [1, 1]])
            #expect(
                try await bob.at(nodes[1].url).send(["a"], to: ["alice"], id: "1").body["indices"] == ["alice": [1, 1]])
            #expect(try await carol.send(["a"], to: ["alice"], id: "1").body["indices"] == ["alice": [2, 2]])
            let other = try await bob.send(["b"], to: ["alice"], id: "1")
            #expect(other.status == 409 && other.problem == "id-used")
            #expect(try await nodes[0].office.mailbox("alice").count == 2)
        }
    }

    @Test("a send under a used id that differs from the first one in anything is refused, and sends nothing")
    func usedID() async throws {
        try await withNodes { nodes, _ in
            let bob = try await TestClient(nodes[0].url, "bob")
            func send(_ message: JSON, id: String) async throws -> TestClient.Reply {
                try await bob.call("POST", "/v1/send", ["to": ["alice"], "id": .string(id), "messages": [message]])
            }
            let first: JSON = ["text": "1", "type": "", "headers": ["a": "b"], "ttl": 600_000, "collapse": "k"]
            let others: [JSON] = [
                ["json": 1, "type": "", "headers": ["a": "b"], "ttl": 600_000, "collapse": "k"],
                ["base64": "MQ==", "type": "", "headers": ["a": "b"], "ttl": 600_000, "collapse": "k"],
                ["text": "1", "headers": ["a": "b"], "ttl": 600_000, "collapse": "k"],
                ["text": "1", "type": "", "headers": ["a": "c"], "ttl": 600_000, "collapse": "k"],
                ["text": "1", "type": "", "headers": [:], "ttl": 600_000, "collapse": "k"],
                ["text": "1", "type": "", "headers": ["a": "b"], "ttl": 600_001, "collapse": "k"],
                ["text": "1", "type": "", "headers": ["a": "b"], "collapse": "k"],
                ["text": "1", "type": "", "headers": ["a": "b"], "ttl": 600_000, "collapse": "l"],
                ["text": "1", "type": "", "headers": ["a": "b"], "ttl": 600_000],
            ]
            #expect(try await send(first, id: "1").status == 200)
            for (number, other) in others.enumerated() {
                let reply = try await send(other, id: "1")
                #expect(reply.status == 409 && reply.problem == "id-used", "\(other)")
                let new = "new \(number)"
                #expect(try await send(other, id: new).status == 200)
                #expect(try await send(first, id: new).problem == "id-used", "\(other)")
                #expect(try await send(other, id: new).status == 200)
            }
            #expect(try await send(first, id: "1").body["indices"] == ["alice": [1, 1]])
            #expect(try await nodes[0].office.mailbox("alice").inspect()?.last == others.count + 1)
        }
    }

    @Test("a collapse key is its sender's: nobody replaces messages of others")
    func collapseKeys() async throws {
        try await withNodes { nodes, _ in
            // The last two would be one name if user and key were only put together.
            let senders = [("bob", "k"), ("carol", "k"), ("b\u{F6}b", "k"), ("bo\u{308}b", "k"), ("bo", "b:k")]
            try await nodes[0].office.send(Message(text: "in process", collapseKey: "k"), to: "alice")
            for round in 0..<2 {
                for (user, key) in senders {
                    let client = try await TestClient(nodes[0].url, user)
                    let message: JSON = ["text": .string("\(user) \(round)"), "collapse": .string(key)]
                    let reply = try await client.call(
                        "POST", "/v1/send", ["to": ["alice"], "id": .string("\(round)"), "messages": [message]])
                    #expect(reply.status == 200)
                }
            }
            let page = try await TestClient(nodes[0].url, "alice").mail()
            #expect(page.body["skipped"]?.integer == senders.count)
            let texts = ["in process"] + senders.map { "\($0.0) 1" }
            #expect(page.texts.map { Array($0.utf8) } == texts.map { Array($0.utf8) })
            let bob = try await TestClient(nodes[0].url, "bob")
            for (count, status) in [(0, 400), (1, 200), (255, 200), (256, 400)] {
                let key = String(repeating: "k", count: count)
                let message: JSON = ["text": "x", "collapse": .string(key)]
                let reply = try await bob.call(
                    "POST", "/v1/send", ["to": ["carol"], "id": .string("bytes \(count)"), "messages": [message]])
                #expect(reply.status == status, "\(count) bytes")
            }
        }
    }

    @Test("a header arrives byte by byte, whatever character its name begins with")
    func headerNames() async throws {
        try await withNodes { nodes, _ in
            let bob = try await TestClient(nodes[0].url, "bob")
            let names = ["o\u{308}", "x", "\u{200D}joined", "\u{301}accent", "\u{FE0F}", "\u{1F3FD}"]
            let headers = JSON.object(names.map { .init(name: $0, value: .string($0)) })
            let reply = try await bob.call(
                "POST", "/v1/send", ["to": ["alice"], "id": "1", "messages": [["text": "a", "headers": headers]]])
            #expect(reply.status == 200)
            // A program in process sets a header of the gateway's.
            try await nodes[0].office.send(Message(text: "b", headers: ["gateway-\u{301}": "x"]), to: "alice")
            let messages = try await TestClient(nodes[0].url, "alice").mail().body["messages"]?.array ?? []
            let received = messages.first?["headers"]?.members?.map {
                [Array($0.name.utf8), Array(($0.value.string ?? "").utf8)]
            }
            #expect(Set(received ?? []) == Set(names.map { [Array($0.utf8), Array($0.utf8)] }))
            #expect(messages.last?["text"] == "b" && messages.last?["headers"] == [:])
        }
    }

    @Test("what is malformed, too large or too much is refused with its own problem")
    func refusals() async throws {
        try await withNodes(configure: { $0.maxBodyBytes = 1 << 20 }, office: { $0.limits.maxMessages = 2 }) {
            nodes, _ in
            let bob = try await TestClient(nodes[0].url, "bob")
            let good: JSON = ["text": "x"]
            let bodies: [JSON] = [
                [], ["to": ["a"]], ["to": ["a"], "id": "1"], ["to": [], "id": "1", "messages": [good]],
                ["to": [1], "id": "1", "messages": [good]], ["to": ["a"], "id": "", "messages": [good]],
                ["to": ["a"], "id": "1", "messages": []], ["to": ["a"], "id": "1", "messages": [[:]]],
                ["to": ["a"], "id": "1", "messages": [["text": "x", "json": 1]]],
                ["to": ["a"], "id": "1", "messages": [["base64": "?"]]],
                ["to": ["a"], "id": "1", "messages": [["text": "x", "ttl": 0]]],
                ["to": ["a"], "id": "1", "messages": [["text": "x", "type": 1]]],
                ["to": ["a"], "id": "1", "messages": [["text": "x", "headers": []]]],
                ["to": ["a{b"], "id": "1", "messages": [good]],
                ["to": ["a"], "id": "1", "messages": [["text": "x", "headers": ["\u{F6}": "1", "o\u{308}": "2"]]]],
            ]
            for body in bodies {
                let reply = try await bob.call("POST", "/v1/send", body)
                #expect(reply.status == 400 && reply.problem == "malformed", "\(body)")
            }
            let half = String(repeating: "x", count: 600_000)
            #expect(try await bob.send([half], to: ["a", "b"]).problem == "too-large")
            // Two names that Swift considers equal are two mailboxes.
            #expect(try await bob.send([half], to: ["b\u{F6}b", "bo\u{308}b"]).problem == "too-large")
            #expect(try await bob.send([half, half], to: ["a"]).status == 413)
            #expect(try await bob.send(["1", "2"], to: ["a"]).status == 200)
            let full = try await bob.send(["3"], to: ["a", "b"])
            #expect(full.status == 429 && full.problem == "mailbox-full")
            #expect(try await nodes[0].office.mailbox("b").count == 0)
            for target in ["?wait=61", "?wait=x", "?limit=0", "?limit=1001", "?after=x", "?wait=0&wait=0"] {
                #expect(try await bob.call("GET", "/v1/mail" + target).status == 400, "\(target)")
            }
            for method in ["GET", "POST", "PUT", "DELETE"] {
                let nothing = try await bob.call(method, "/v1/nothing")
                #expect(nothing.status == 404 && nothing.problem == "not-found", "\(method)")
            }
            let method = try await bob.call("PUT", "/v1/mail")
            #expect(method.status == 405 && method.headers["Allow"] == ["GET"])
            #expect(try await bob.call("GET", "/v1/socket").status == 426)
        }
    }

    @Test("a poll waits for a message that is sent at another node, and ends at its time")
    func poll() async throws {
        try await withNodes(2) { nodes, _ in
            let alice = try await TestClient(nodes[0].url, "alice")
            let bob = try await TestClient(nodes[1].url, "bob")
            async let poll = alice.mail(wait: 60)
            try await until("the poll waits") {
                try await nodes[0].office.mailbox("alice").inspect()?.listeningProcesses == 1
            }
            _ = try await bob.send(["hello"], to: ["alice"])
            let page = try await poll
            #expect(page.texts == ["hello"])
            var last = try await alice.mail(after: page.cursor, wait: 1)
            // A node that has too much to do tells its client to repeat the poll.
            while last.problem == "unavailable" { last = try await alice.mail(after: page.cursor, wait: 1) }
            #expect(last.body["status"] == "timedOut", "\(last)")
        }
    }

    @Test("a mailbox that has lost messages says so, and reading continues")
    func losses() async throws {
        try await withNodes(office: {
            $0.limits.maxMessages = 2
            $0.limits.whenFull = .dropOldest
        }) { nodes, _ in
            let alice = try await TestClient(nodes[0].url, "alice")
            _ = try await alice.send(["1"], to: ["alice"], id: "1")
            let first = try await alice.mail()
            _ = try await alice.send(["2", "3"], to: ["alice"], id: "2")
            _ = try await alice.send(["4"], to: ["alice"], id: "3")
            let gap = try await alice.mail(after: first.cursor)
            #expect(gap.body["status"] == "truncated" && gap.body["first"] == 3)
            #expect(try await alice.mail(after: gap.cursor).texts == ["3", "4"])
            try await nodes[0].office.mailbox("alice").delete()
            #expect(try await alice.mail(after: gap.cursor).body["status"] == "reset")
        }
    }
}
