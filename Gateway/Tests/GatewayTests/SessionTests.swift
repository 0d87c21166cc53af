import Foundation
import HTTPTypes
import Hiredis
import Hummingbird
import Logging
import NIOCore
import NIOHTTP1
import QueueListen
import Testing

@testable import Gateway

@Suite("Sessions")
struct SessionTests {
    @Test("a login needs the right credential and form")
    func login() async throws {
        try await withNodes { nodes, _ in
            let url = nodes[0].url
            let reply = try await TestClient.login(url, "alice", "phone")
            #expect(reply.status == 201)
            #expect(reply.body.members?.map(\.name) == ["session", "token", "expires", "time", "cursor"])
            #expect(reply.headers["Cache-Control"] == ["no-store"])
            let wrong = try await TestClient.login(url, "alice", "phone", credential: "secret of bob")
            #expect(wrong.status == 401 && wrong.problem == "bad-credential")
            #expect(wrong.headers["Content-Type"] == ["application/problem+json"])
            let text = try await TestClient.login(url, "alice", "phone", headers: ["Content-Type": "text/plain"])
            #expect(text.status == 415 && text.problem == "content-type")
            for (user, device) in [("", "phone"), ("a{b", "phone"), ("alice", ""), ("alice", "a\nb")] {
                let reply = try await TestClient.login(url, user, device)
                #expect(reply.status == 400 && reply.problem == "malformed", "\(user) \(device)")
            }
        }
    }

    @Test("a page of another origin cannot log in")
    func origin() async throws {
        try await withNodes(configure: { $0.allowedOrigins = ["https://chat.example"] }) { nodes, _ in
            func login(_ origin: String) async throws -> TestClient.Reply {
                try await TestClient.login(nodes[0].url, "alice", "phone", headers: ["Origin": origin])
            }
            for origin in ["https://evil.example", "null", "https://chat.example.evil", "http://chat.example"] {
                let reply = try await login(origin)
                #expect(reply.status == 403 && reply.problem == "origin")
                #expect(reply.headers["Access-Control-Allow-Origin"].isEmpty)
            }
            let reply = try await login("https://chat.example")
            #expect(reply.status == 201)
            #expect(reply.headers["Access-Control-Allow-Origin"] == ["https://chat.example"])
            let preflight = try await TestClient.perform(
                "OPTIONS", nodes[0].url + "/v1/send", ["Origin": "https://chat.example"])
            #expect(preflight.status == 204)
            #expect(preflight.headers["Access-Control-Allow-Headers"].first?.contains("X-Signature") == true)
        }
    }

    @Test("a session is valid at every node, and a signed request once at all of them")
    func replay() async throws {
        try await withNodes(2) { nodes, _ in
            let client = try await TestClient(nodes[0].url, "alice")
            #expect(try await client.mail().status == 200)
            #expect(try await client.at(nodes[1].url).mail().status == 200)
            let target = "/v1/mail?wait=0"
            let headers = client.headers("GET", target)
            #expect(try await TestClient.perform("GET", nodes[0].url + target, headers).status == 200)
            for node in nodes {
                let again = try await TestClient.perform("GET", node.url + target, headers)
                #expect(again.status == 401 && again.problem == "nonce-used")
            }
            // The same nonce, signed again for something else.
            let nonce = try #require(headers["X-Nonce"].first)
            let other = client.headers("GET", "/v1/mail?wait=0&limit=1", nonce: nonce)
            let reply = try await TestClient.perform("GET", nodes[1].url + "/v1/mail?wait=0&limit=1", other)
            #expect(reply.problem == "nonce-used")
        }
    }

    @Test("a changed path, query, body, method, session, time or nonce is refused, and stores nothing")
    func changed() async throws {
        try await withNodes { nodes, _ in
            let url = nodes[0].url
            let client = try await TestClient(url, "alice")
            let bob = try await TestClient(url, "bob")
            let target = "/v1/mail?wait=0"
            func expectRefused(
                _ method: String, _ target: String, _ headers: HTTPHeaders, _ body: [UInt8] = [],
                _ problem: String = "bad-signature"
            ) async throws {
                let reply = try await TestClient.perform(method, url + target, headers, body)
                #expect(reply.status == 401 && reply.problem == problem, "\(method) \(target)")
                #expect(reply.body["time"]?.integer ?? 0 > 0)
                #expect(reply.headers["WWW-Authenticate"].first?.contains("error=\"\(problem)\"") == true)
            }
            let headers = client.headers("GET", target)
            try await expectRefused("GET", "/v1/mail?wait=1", headers)
            try await expectRefused("GET", "/v1/mail?wait=0&limit=1", headers)
            try await expectRefused("GET", "/v1/mail", headers)
            try await expectRefused("GET", "/v1/mail?wait=%30", headers)
            try await expectRefused("GET", "/v1/events?wait=0", headers)
            let ack = client.headers("POST", "/v1/ack", JSON.object([]).bytes)
            try await expectRefused("POST", "/v1/ack", ack, Array("{\"cursor\":\"\"}".utf8))
            try await expectRefused("POST", "/v1/send", ack, Array("{}".utf8))
            try await expectRefused("DELETE", "/v1/sessions", client.headers("POST", "/v1/sessions"))
            for (name, value) in [
                ("X-Session", bob.session), ("X-Time", "\(Int(Date().timeIntervalSince1970 * 1000) + 1)"),
                ("X-Nonce", "another-nonce-0123456789"), ("X-Signature", "v1=" + String(repeating: "00", count: 32)),
            ] {
                var changed = headers
                changed.replaceOrAdd(name: name, value: value)
                try await expectRefused("GET", target, changed)
            }
            for name in ["X-Session", "X-Time", "X-Nonce", "X-Signature"] {
                var changed = headers
                changed.remove(name: name)
                try await expectRefused("GET", target, changed, [], "unsigned")
                changed = headers
                changed.add(name: name, value: headers[name][0])
                try await expectRefused("GET", target, changed, [], "unsigned")
            }
            // None of these has used the nonce up, or stored anything.
            let keys = try await nodes[0].redis.send("KEYS", "*:nonce:*").array ?? []
            #expect(keys.isEmpty)
            #expect(try await TestClient.perform("GET", url + target, headers).status == 200)
        }
    }

    @Test("a time that is more than a minute off is refused, and the reply tells the time")
    func stale() async throws {
        try await withNodes { nodes, _ in
            let client = try await TestClient(nodes[0].url, "alice")
            let target = "/v1/mail?wait=0"
            for offset in [-120_000, 120_000] {
                let time = Int(Date().timeIntervalSince1970 * 1000)
                let reply = try await TestClient.perform(
                    "GET", nodes[0].url + target, client.headers("GET", target, time: time + offset))
                #expect(reply.status == 401 && reply.problem == "stale")
                // The clocks are those of one machine.
                #expect(abs((reply.body["time"]?.integer ?? 0) - time) < 30_000)
            }
            for offset in [-30_000, 30_000] {
                let time = Int(Date().timeIntervalSince1970 * 1000)
                let headers = client.headers("GET", target, time: time + offset)
                #expect(try await TestClient.perform("GET", nodes[0].url + target, headers).status == 200)
            }
            // A nonce is kept for as long as its request could be repeated.
            for key in try await nodes[0].redis.send("KEYS", "*:nonce:*").array ?? [] {
                let end = try await nodes[0].redis.send("PEXPIRETIME", .string(key.string ?? "")).integer ?? 0
                let now = Int(Date().timeIntervalSince1970 * 1000)
                #expect((now + 10_000...now + 90_001).contains(end))
            }
        }
    }

    @Test("a newer login of the device ends the older session and its poll, other devices stay")
    func newerLogin() async throws {
        try await withNodes(2) { nodes, _ in
            let first = try await TestClient(nodes[0].url, "alice")
            let tablet = try await TestClient(nodes[0].url, "alice", device: "tablet")
            async let poll = first.mail(wait: 60)
            try await until("the poll waits") {
                try await nodes[0].office.mailbox("alice").inspect()?.listeningProcesses == 1
            }
            let second = try await TestClient(nodes[1].url, "alice")
            #expect(try await poll.body["status"]?.string == "superseded")
            let reply = try await first.mail()
            #expect(reply.status == 401 && reply.problem == "logged-in-elsewhere")
            #expect(try await second.mail().status == 200)
            #expect(try await tablet.at(nodes[1].url).mail().status == 200)
        }
    }

    @Test("a logout ends the session at all nodes and forgets the device")
    func logout() async throws {
        try await withNodes(2) { nodes, _ in
            let client = try await TestClient(nodes[0].url, "alice")
            #expect(try await nodes[0].office.mailbox("alice").devices().count == 1)
            let reply = try await client.at(nodes[1].url).call("DELETE", "/v1/sessions")
            #expect(reply.status == 204)
            #expect(reply.headers["Set-Cookie"].first?.contains("Max-Age=0") == true)
            #expect(try await nodes[0].office.mailbox("alice").devices().isEmpty)
            #expect(try await client.mail().problem == "unknown-session")
        }
    }

    /// A node that dies between the end of the session and the device's.
    @Test("a logout that is repeated because its reply was lost forgets the device, unless it has logged in again")
    func repeatedLogout() async throws {
        try await withNodes { nodes, _ in
            let (node, alice) = (nodes[0], try await TestClient(nodes[0].url, "alice"))
            let mailbox = try node.office.mailbox("alice")
            try await node.gateway.sessions.logout(user: "alice", device: "phone")
            #expect(try await alice.mail().problem == "unknown-session")
            #expect(try await mailbox.devices().count == 1)
            #expect(try await alice.call("DELETE", "/v1/sessions").status == 204)
            #expect(try await mailbox.devices().isEmpty)
            let again = try await TestClient(node.url, "alice")
            #expect(try await alice.call("DELETE", "/v1/sessions").status == 204)
            #expect(try await mailbox.devices().count == 1)
            #expect(try await again.mail().status == 200)
            // For a limited time.
            for key in try await node.redis.send("KEYS", "gw:*:session:*").array ?? [] {
                let time = try await node.redis.send("PTTL", .string(key.string ?? "")).integer ?? 0
                let isEnded = key.string?.contains(alice.session) == true
                #expect(time > 0 && (time <= 600_000) == isEnded)
            }
        }
    }

    @Test("a login of an older session's device does not let its logout forget the newer one")
    func lateLogout() async throws {
        try await withNodes { nodes, _ in
            let first = try await TestClient(nodes[0].url, "alice")
            let second = try await TestClient(nodes[0].url, "alice")
            #expect(try await first.call("DELETE", "/v1/sessions").problem == "logged-in-elsewhere")
            #expect(try await nodes[0].office.mailbox("alice").devices().count == 1)
            #expect(try await second.mail().status == 200)
        }
    }

    @Test("a session ends at its time")
    func expiry() async throws {
        try await withNodes(configure: { $0.sessionLifetime = .seconds(15) }) { nodes, _ in
            let client = try await TestClient(nodes[0].url, "alice")
            try await until("the session has ended") { try await client.mail().problem == "unknown-session" }
            // The node ends a session up to a millisecond before Redis does.
            try await until("Redis has no session") {
                try await nodes[0].redis.send("KEYS", "gw:*:session:*").array?.isEmpty == true
            }
        }
    }

    @Test("a 65th device replaces the one that was not seen for the longest time")
    func manyDevices() async throws {
        try await withNodes { nodes, _ in
            let first = try await TestClient(nodes[0].url, "alice", device: "d0")
            for number in 1..<65 { _ = try await TestClient(nodes[0].url, "alice", device: "d\(number)") }
            let devices = try await nodes[0].office.mailbox("alice").devices().map(\.name)
            #expect(devices.count == 64)
            #expect(!devices.contains("d0") && devices.contains("d64"))
            #expect(try await first.mail().problem == "unknown-session")
        }
    }

    @Test("devices that log in at the same time replace the oldest ones, and all are admitted")
    func concurrentDevices() async throws {
        try await withNodes(2) { nodes, _ in
            for number in 0..<64 { _ = try await TestClient(nodes[0].url, "alice", device: "d\(number)") }
            let count = 8
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<count {
                    let url = nodes[number % 2].url
                    group.addTask {
                        let client = try await TestClient(url, "alice", device: "new\(number)")
                        _ = try await client.mail()
                    }
                }
                try await group.waitForAll()
            }
            #expect(try await nodes[0].office.mailbox("alice").devices().count <= 64)
        }
    }

    @Test("logins are limited for each address and each user there, calls for each session, at all nodes together")
    func limits() async throws {
        try await withNodes(
            2,
            configure: {
                $0.loginsOfUserPerMinute = 3
                $0.loginsFromAddressPerMinute = 5
                $0.requestsPerSecond = 1
            }
        ) { nodes, _ in
            var client = try await TestClient(nodes[0].url, "alice")
            for _ in 0..<2 { client = try await TestClient(nodes[1].url, "alice") }
            let limited = try await TestClient.login(nodes[1].url, "alice", "phone")
            #expect(limited.status == 429 && limited.problem == "too-many-requests")
            #expect(Int(limited.headers["Retry-After"].first ?? "") ?? 0 >= 1)
            _ = try await TestClient(nodes[0].url, "bob")
            // The limit recovers by one login in twelve seconds.
            try await until("the address has no login left") {
                try await TestClient.login(nodes[0].url, "carol", "phone").status == 429
            }
            // At the same time, so that the limit does not recover between them.
            let problems = try await withThrowingTaskGroup(of: String?.self) { [client] group in
                for number in 0..<40 {
                    group.addTask { try await client.at(nodes[number % 2].url).mail().problem }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(problems.contains("too-many-requests"))
        }
    }

    @Test("a user logs in while wrong logins in the user's name come from other addresses")
    func lockOut() async throws {
        try await withNodes(
            2,
            configure: {
                $0.trustsForwardedFor = true
                $0.loginsOfUserPerMinute = 2
            }
        ) { nodes, _ in
            func login(_ number: Int, _ address: String, _ credential: JSON? = nil) async throws -> Int {
                try await TestClient.login(
                    nodes[number % 2].url, "alice", "phone", credential: credential,
                    headers: ["X-Forwarded-For": address]
                ).status
            }
            for number in 0..<20 {
                let status = try await login(number, "192.0.2.\(number % 5)", "wrong")
                #expect(status == (number < 10 ? 401 : 429), "attempt \(number)")
            }
            #expect(try await login(0, "198.51.100.1") == 201)
            // The attempts of one address have a limit, with whatever credential.
            #expect(try await login(1, "192.0.2.1") == 429)
        }
    }

    @Test("a request beyond the limit of its session stores no nonce, and one with a wrong signature does not count")
    func limitBeforeNonce() async throws {
        try await withNodes(configure: { $0.requestsPerSecond = 5 }) { nodes, _ in
            let gateway = nodes[0].gateway
            let alice = try await TestClient(nodes[0].url, "alice")
            let router = Router(context: BareContext.self)
            gateway.verified(gateway.path("/v1/mail", [.get], on: router)).get { _, _ in NoContent() }
            let responder = router.buildResponder()
            @Sendable func status(_ client: TestClient) async throws -> HTTPResponse.Status {
                var head = HTTPRequest(method: .get, scheme: nil, authority: nil, path: "/v1/mail")
                for (name, value) in client.headers("GET", "/v1/mail") {
                    head.headerFields[try #require(HTTPField.Name(name))] = value
                }
                let request = Request(head: head, body: RequestBody(buffer: ByteBuffer()))
                return try await responder.respond(to: request, context: BareContext(source: .init())).status
            }
            var stranger = alice
            stranger.token = "?"
            for _ in 0..<100 { #expect(try await status(stranger) == .unauthorized) }
            #expect(try await status(alice) == .noContent)
            let admitted = try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<8 {
                    group.addTask {
                        var count = 0
                        // Few enough for the nonces to be there at the end.
                        for _ in 0..<25 {
                            let status = try await status(alice)
                            #expect(status == .noContent || status == .tooManyRequests)
                            if status == .noContent { count += 1 }
                        }
                        return count
                    }
                }
                return try await group.reduce(0, +)
            }
            #expect(admitted < 200, "the calls must exceed the limit for this test to mean anything")
            let keys = try await nodes[0].redis.send("KEYS", "*:nonce:*").array ?? []
            #expect(keys.count == admitted + 1)
        }
    }

    @Test("behind a proxy the last forwarded address counts, and a network of IPv6 as one address")
    func forwarded() async throws {
        try await withNodes(configure: {
            $0.trustsForwardedFor = true
            $0.loginsFromAddressPerMinute = 1
        }) { nodes, _ in
            // The status of a login that was forwarded by these addresses.
            let logins: [([String], Int)] = [
                (["192.0.2.1"], 201), (["192.0.2.1"], 429),
                // The addresses that the client has written itself come first, in the same field or in another one.
                (["192.0.2.7, 192.0.2.1"], 429), (["192.0.2.7", "192.0.2.1"], 429), (["192.0.2.1, 192.0.2.2"], 201),
                (["::ffff:192.0.2.2"], 429), (["2001:db8:0:1::1"], 201), (["2001:db8:0:1:ffff::2"], 429),
                (["2001:db8:0:2::1"], 201),
                // Not through the proxy: the address of the connection.
                ([], 201), ([], 429),
            ]
            for (addresses, status) in logins {
                let headers = HTTPHeaders(addresses.map { ("X-Forwarded-For", $0) })
                let reply = try await TestClient.login(nodes[0].url, "alice", "phone", headers: headers)
                #expect(reply.status == status, "\(addresses)")
            }
        }
    }

    @Test("the subscriber of an address is the whole IPv4 address, or the network of an IPv6 address")
    func subscribers() {
        for (address, subscriber) in [
            ("192.0.2.1", "192.0.2.1"), ("::ffff:192.0.2.1", "192.0.2.1"), ("2001:db8:1:2::3", "20010db800010002/64"),
            ("2001:db8:1:2:3::4", "20010db800010002/64"), ("fe80::1%eth0", "fe80000000000000/64"), ("x", "x"),
        ] { #expect(Gateway.subscriber(of: address) == subscriber) }
    }

    @Test("what is left of a login that was held up does not end the stream of a newer login")
    func lateLogin() async throws {
        try await withNodes(2) { nodes, _ in
            let older = try await TestClient(nodes[0].url, "alice")
            let alice = try await TestClient(nodes[1].url, "alice")
            #expect(try await older.mail().problem == "logged-in-elsewhere")
            var events = try await TestEvents(alice).makeAsyncIterator()
            _ = try await alice.send(["1"], to: ["alice"])
            #expect(try await events.next()?.data["text"] == "1")
            // The steps of the older login after its session has begun.
            let reader = try nodes[0].office.mailbox("alice").reader(device: "phone")
            let id = try #require(SessionID(older.session))
            let session = Session(
                id: id, user: "alice", device: "phone", expires: 1, verifiedAt: 0, askedAt: ContinuousClock.now)
            _ = try await nodes[0].gateway.register(reader, of: session)
            _ = try await alice.send(["2"], to: ["alice"])
            let next = try await events.next()
            #expect(next?.name == "message" && next?.data["text"] == "2")
        }
    }

    @Test("a device that logs in while an older session of it logs out stays known", .timeLimit(.minutes(10)))
    func loginDuringLogout() async throws {
        try await withNodes(2) { nodes, _ in
            let rounds = 300
            let forgotten = try await withThrowingTaskGroup(of: Bool.self) { group in
                var forgotten = 0
                for number in 0..<rounds {
                    if number >= 8, try await group.next() == true { forgotten += 1 }
                    group.addTask {
                        let user = "user-\(number)"
                        let older = try await TestClient(nodes[0].url, user)
                        async let logout = older.call("DELETE", "/v1/sessions")
                        // At a different moment of the logout in each round.
                        try await Task.sleep(for: .microseconds(number % 50 * 100))
                        let newer = try await TestClient(nodes[1].url, user)
                        let status = try await logout.status
                        #expect(status == 204 || status == 401)
                        let isForgotten = try await nodes[0].office.mailbox(user).devices().isEmpty
                        #expect(try await newer.mail().status == 200)
                        return isForgotten
                    }
                }
                for try await wasForgotten in group where wasForgotten { forgotten += 1 }
                return forgotten
            }
            #expect(forgotten == 0, "of \(rounds)")
        }
    }

    @Test("the token is in the login's reply and nowhere else")
    func tokenStaysSecret() async throws {
        try await withNodes { nodes, _ in
            let client = try await TestClient(nodes[0].url, "alice")
            #expect(client.token.utf8.count == 43)
            var replies: [TestClient.Reply] = []
            replies.append(try await client.mail())
            replies.append(try await client.send(["x"], to: ["alice"]))
            replies.append(try await client.call("GET", "/v1/nothing"))
            replies.append(
                try await TestClient.perform("GET", nodes[0].url + "/v1/mail", ["X-Session": client.session]))
            replies.append(try await client.ack(client.cursor))
            replies.append(
                try await TestClient.perform(
                    "POST", nodes[0].url + "/v1/ack", ["Cookie": client.cookie, "Content-Type": "application/json"], [])
            )
            var events = try await TestEvents(
                nodes[0].url + "/v1/events", ["Cookie": client.cookie, "Sec-Fetch-Site": "same-origin"]
            ).makeAsyncIterator()
            let event = try await events.next()
            #expect(event?.name == "message" && !"\(event as Any)".contains(client.token))
            let other = try await TestClient(nodes[0].url, "alice")
            replies.append(try await client.mail())
            replies.append(try await client.call("DELETE", "/v1/sessions"))
            for reply in replies { #expect(!"\(reply)".contains(client.token) && !"\(reply)".contains(other.token)) }
            let log = nodes[0].log.text
            #expect(log.contains("/v1/mail"), "the log must contain the requests for this test to mean anything")
            #expect(!log.contains(client.token) && !log.contains(other.token))
            #expect(!log.contains("secret of alice"))
            #expect(!log.contains(client.cookie.split(separator: ".").last ?? "?"))
        }
    }
}

/// The context of requests that come from no connection.
private struct BareContext: RequestContext {
    struct Source: RequestContextSource {
        let logger = Logger(label: "test")
    }

    var coreContext: CoreRequestContextStorage

    init(source: Source) { coreContext = .init(source: source) }
}
