import AsyncHTTPClient
import HTTPTypes
import Hummingbird
import NIOConcurrencyHelpers
import NIOCore
import NIOHTTP1
import QueueListen
import RedisDCTesting
import ServiceLifecycle
import Testing

@testable import Gateway

@Suite("Event streams")
struct EventsTests {
    /// Reads this many events.
    private func read(_ iterator: inout TestEvents.Iterator, _ count: Int) async throws -> [TestEvents.Event] {
        var events: [TestEvents.Event] = []
        while events.count < count { events.append(try #require(try await iterator.next())) }
        return events
    }

    private func texts(_ events: [TestEvents.Event]) -> [String] { events.compactMap { $0.data["text"]?.string } }

    @Test("a stream delivers what is there and what comes, and acknowledges nothing")
    func delivers() async throws {
        try await withNodes(2, configure: { $0.reconnectDelay = .milliseconds(700) }) { nodes, _ in
            let alice = try await TestClient(nodes[0].url, "alice")
            let bob = try await TestClient(nodes[1].url, "bob")
            _ = try await bob.send(["1", "2"], to: ["alice"])
            let stream = try await TestEvents(alice)
            #expect(stream.status == 200)
            #expect(stream.headers["Content-Type"] == ["text/event-stream"])
            #expect(stream.headers["Cache-Control"] == ["no-store"])
            var events = stream.makeAsyncIterator()
            let first = try await read(&events, 2)
            #expect(first.map(\.name) == ["message", "message"] && texts(first) == ["1", "2"])
            #expect(first.map(\.id) == first.compactMap { $0.data["cursor"]?.string })
            #expect(events.retry == 700)
            for number in 3...20 {
                _ = try await bob.send(["\(number)"], to: ["alice"])
                #expect(texts(try await read(&events, 1)) == ["\(number)"])
            }
            #expect(try await nodes[0].office.mailbox("alice").count == 20)
            #expect(try await alice.ack(first[1].id).status == 204)
            #expect(try await nodes[0].office.mailbox("alice").count == 18)
        }
    }

    @Test("a stream resumes after Last-Event-ID at another node, with nothing lost and nothing twice")
    func resumes() async throws {
        try await withNodes(2) { nodes, _ in
            let alice = try await TestClient(nodes[0].url, "alice")
            _ = try await alice.send((1...50).map { "\($0)" }, to: ["alice"])
            var seen: [String] = []
            var id: String?
            for turn in 0..<5 {
                var events = try await TestEvents(alice.at(nodes[turn % 2].url), lastEventID: id).makeAsyncIterator()
                seen += texts(try await read(&events, 10))
                id = events.id
            }
            #expect(seen == (1...50).map { "\($0)" })
            // Last-Event-ID wins over the parameter.
            let last = try #require(id)
            _ = try await alice.send(["51"], to: ["alice"])
            var events = try await TestEvents(alice, after: alice.cursor, lastEventID: last).makeAsyncIterator()
            #expect(texts(try await read(&events, 1)) == ["51"])
            #expect(try await TestEvents(alice, lastEventID: "nonsense").status == 400)
        }
    }

    @Test("a second stream of the device, at another node, ends the first in a way that does not reconnect")
    func superseded() async throws {
        try await withNodes(2) { nodes, _ in
            let alice = try await TestClient(nodes[0].url, "alice")
            var first = try await TestEvents(alice).makeAsyncIterator()
            try await until("the first stream waits") { nodes[0].gateway.openStreams == 1 }
            try await until("the first stream is registered") {
                try await nodes[0].office.mailbox("alice").inspect()?.listeningProcesses == 1
            }
            var second = try await TestEvents(alice.at(nodes[1].url)).makeAsyncIterator()
            let end = try await read(&first, 1)[0]
            #expect(end.name == "superseded" && end.id.hasSuffix(";superseded"))
            #expect(end.data["cursor"]?.string == String(end.id.dropLast(";superseded".count)))
            #expect(try await first.next() == nil)
            #expect(try await TestEvents(alice, lastEventID: end.id).status == 204)
            // The second is undisturbed.
            _ = try await alice.send(["x"], to: ["alice"])
            #expect(texts(try await read(&second, 1)) == ["x"])
            try await until("the place of the first stream is free") { nodes[0].gateway.openStreams == 0 }
        }
    }

    @Test("the signature of a request covers its body")
    func body() async throws {
        try await withNodes { nodes, _ in
            let alice = try await TestClient(nodes[0].url, "alice")
            let body = Array("ab".utf8)
            for (signed, status) in [(body, 200), ([], 401)] {
                var request = HTTPClientRequest(url: alice.url + "/v1/events")
                request.headers = alice.headers("GET", "/v1/events", signed)
                request.body = .bytes(body)
                let response = try await TestClient.http.execute(request, deadline: .distantFuture)
                #expect(response.status.code == status)
            }
        }
    }

    @Test("the connection of a stream that has ended carries the next request")
    func nextRequest() async throws {
        try await withNodes { nodes, _ in
            let alice = try await TestClient(nodes[0].url, "alice")
            let headers = alice.headers("GET", "/v1/events").map { "\($0.name): \($0.value)\r\n" }.joined()
            try await withRawConnection(port: nodes[0].port) { connection in
                try await connection.write("GET /v1/events HTTP/1.1\r\nHost: gateway\r\n\(headers)\r\n")
                #expect(try await connection.readHead()?.hasPrefix("HTTP/1.1 200 ") == true)
                #expect(try await alice.call("DELETE", "/v1/sessions").status == 204)
                #expect(try await connection.readHead()?.hasSuffix("\r\n0\r\n\r\n") == true)
                try await connection.write("GET /v1/nothing HTTP/1.1\r\nHost: gateway\r\n\r\n")
                #expect(try await connection.readHead()?.hasPrefix("HTTP/1.1 404 ") == true)
            }
        }
    }

    @Test("a loss is an event, after which the stream continues")
    func gap() async throws {
        try await withNodes(office: {
            $0.limits.maxMessages = 2
            $0.limits.whenFull = .dropOldest
        }) { nodes, _ in
            let alice = try await TestClient(nodes[0].url, "alice")
            _ = try await alice.send(["1"], to: ["alice"])
            let cursor = try await alice.mail().cursor
            _ = try await alice.send(["2", "3"], to: ["alice"])
            _ = try await alice.send(["4"], to: ["alice"])
            var events = try await TestEvents(alice, after: cursor).makeAsyncIterator()
            let read = try await read(&events, 3)
            #expect(read.map(\.name) == ["gap", "message", "message"] && texts(read) == ["3", "4"])
            #expect(read[0].data["status"] == "truncated" && read[0].data["first"] == 3)
            #expect(read[0].data["cursor"]?.string == read[0].id)
            try await nodes[0].office.mailbox("alice").delete()
            let reset = try #require(try await events.next())
            #expect(reset.name == "gap" && reset.data["status"] == "reset")
            _ = try await alice.send(["new"], to: ["alice"])
            #expect(try await events.next()?.data["text"] == "new")
        }
    }

    @Test("an idle stream gets comments, and ends with its session")
    func expiry() async throws {
        try await withNodes(configure: {
            $0.keepAliveInterval = .milliseconds(50)
            $0.sessionLifetime = .seconds(15)
        }) { nodes, _ in
            let alice = try await TestClient(nodes[0].url, "alice")
            var events = try await TestEvents(alice).makeAsyncIterator()
            let bye = try #require(try await events.next())
            #expect(bye.name == "bye" && bye.data["reason"] == "expired")
            #expect(events.comments > 0)
            #expect(try await events.next() == nil)
        }
    }

    @Test("another server than that of the gateway serves streams too, and notices that clients have gone at a comment")
    func otherServer() async throws {
        try await withNodes(
            configure: {
                $0.keepAliveInterval = .milliseconds(200)
                $0.sessionLifetime = .seconds(15)
            }, hasGatewayServer: false
        ) { nodes, _ in
            let alice = try await TestClient(nodes[0].url, "alice")
            var events = try await TestEvents(alice).makeAsyncIterator()
            for text in ["1", "2"] {
                try await nodes[0].office.send(text, to: "alice")
                #expect(texts(try await read(&events, 1)) == [text])
            }
            let bye = try #require(try await events.next())
            #expect(bye.name == "bye" && bye.data["reason"] == "expired")
            #expect(events.comments > 0)
            let bob = try await TestClient(nodes[0].url, "bob")
            let gone = Task { for try await _ in try await TestEvents(bob) {} }
            try await until("the stream is open") { nodes[0].gateway.openStreams == 1 }
            gone.cancel()
            try await until("the stream has ended") { nodes[0].gateway.openStreams == 0 }
            _ = await gone.result
        }
    }

    /// Encodes bodies, and counts the comments that it has encoded.
    private struct Encoder: RouterMiddleware {
        let comments = NIOLockedValueBox(0)

        func handle(
            _ request: Request, context: TestNode.Context, next: (Request, TestNode.Context) async throws -> Response
        ) async throws -> Response {
            var response = try await next(request, context)
            response.headers[.contentEncoding] = "none"
            response.body = response.body.map { [comments] buffer in
                if buffer == ByteBuffer(string: ":\n\n") { comments.withLockedValue { $0 += 1 } }
                return buffer
            }
            return response
        }
    }

    @Test("a middleware that encodes bodies encodes the comments too")
    func encoded() async throws {
        let encoder = Encoder()
        try await withNodes(
            configure: { $0.keepAliveInterval = .milliseconds(200) },
            addCalls: { $1.add(middleware: encoder) }
        ) { nodes, _ in
            let alice = try await TestClient(nodes[0].url, "alice")
            var events = try await TestEvents(alice).makeAsyncIterator()
            try await until("a comment is encoded") { encoder.comments.withLockedValue { $0 > 0 } }
            try await nodes[0].office.send("1", to: "alice")
            #expect(texts(try await read(&events, 1)) == ["1"])
            #expect((1...encoder.comments.withLockedValue { $0 }).contains(events.comments))
        }
    }

    @Test("a logout ends the stream at another node; a newer login ends it as superseded")
    func logout() async throws {
        try await withNodes(2) { nodes, _ in
            for isLogout in [true, false] {
                let alice = try await TestClient(nodes[0].url, "alice")
                var events = try await TestEvents(alice).makeAsyncIterator()
                try await until("the stream waits") {
                    try await nodes[0].office.mailbox("alice").inspect()?.listeningProcesses == 1
                }
                if isLogout {
                    #expect(try await alice.at(nodes[1].url).call("DELETE", "/v1/sessions").status == 204)
                } else {
                    _ = try await TestClient(nodes[1].url, "alice")
                }
                let end = try await events.next()
                #expect(end?.name == (isLogout ? "bye" : "superseded"))
                #expect(end?.data["reason"] == (isLogout ? "expired" : nil))
                try await nodes[0].office.mailbox("alice").delete()
            }
        }
    }

    @Test("the cookie opens event streams alone, and only for pages of the same or an allowed origin")
    func cookie() async throws {
        try await withNodes(configure: { $0.allowedOrigins = ["https://chat.example"] }) { nodes, _ in
            let url = nodes[0].url
            let alice = try await TestClient(url, "alice")
            #expect(alice.cookie.hasPrefix("redisdc-events=\(alice.session)."))
            func open(_ more: HTTPHeaders, cookie: String? = nil, _ query: String = "") async throws -> Int {
                var headers: HTTPHeaders = ["Cookie": cookie ?? alice.cookie]
                headers.add(contentsOf: more)
                return try await TestEvents(url + "/v1/events" + query, headers).status
            }
            #expect(try await open(["Sec-Fetch-Site": "same-origin"]) == 200)
            #expect(try await open(["Sec-Fetch-Site": "cross-site", "Origin": "https://chat.example"]) == 200)
            #expect(try await open([:]) == 403)
            #expect(try await open(["Sec-Fetch-Site": "same-site"]) == 403)
            #expect(try await open(["Sec-Fetch-Site": "same-origin", "Origin": "https://evil.example"]) == 403)
            #expect(try await open(["Sec-Fetch-Site": "same-origin"], "?session=\(alice.session)") == 200)
            let bob = try await TestClient(url, "bob")
            #expect(try await open(["Sec-Fetch-Site": "same-origin"], "?session=\(bob.session)") == 401)
            #expect(try await open(["Sec-Fetch-Site": "same-origin"], cookie: alice.cookie + "x") == 401)
            let mixed = "redisdc-events=\(bob.session).\(alice.cookie.split(separator: ".").last ?? "")"
            #expect(try await open(["Sec-Fetch-Site": "same-origin"], cookie: mixed) == 401)
            // Any other call needs a signature.
            for target in ["/v1/mail", "/v1/ack", "/v1/send"] {
                let reply = try await TestClient.perform(
                    target == "/v1/mail" ? "GET" : "POST", url + target,
                    ["Cookie": alice.cookie, "Sec-Fetch-Site": "same-origin", "Content-Type": "application/json"])
                #expect(reply.status == 401 && reply.problem == "unsigned")
            }
            _ = try await alice.call("DELETE", "/v1/sessions")
            #expect(try await open(["Sec-Fetch-Site": "same-origin"]) == 401)
        }
        try await withNodes(configure: { $0.isSecure = true }) { nodes, _ in
            let reply = try await TestClient.login(nodes[0].url, "alice", "phone")
            let cookie = try #require(reply.headers["Set-Cookie"].first)
            #expect(cookie.hasPrefix("__Host-redisdc-events="))
            for part in ["; Secure", "; HttpOnly", "; SameSite=Strict", "; Path=/"] { #expect(cookie.contains(part)) }
            #expect(!cookie.contains("Domain"))
        }
    }

    @Test("a session has a maximum number of streams, of both kinds together; others have their own")
    func tooMany() async throws {
        try await withNodes(configure: { $0.maxStreamsOfSession = 1 }) { nodes, _ in
            let alice = try await TestClient(nodes[0].url, "alice")
            do {
                var events = try await TestEvents(alice).makeAsyncIterator()
                _ = try await alice.send(["1"], to: ["alice"])
                let id = try await read(&events, 1)[0].id
                #expect(try await TestEvents(alice).status == 429)
                let socket = try await TestSocket(nodes[0].url)
                try await socket.send(TestSocket.authentication(alice, target: "/v1/socket"))
                #expect(try await socket.json()?["error"]?["type"] == "urn:redisdc:too-many-streams")
                #expect(try await socket.closeCode() == 1008)
                // The stream that was open goes on.
                _ = try await alice.send(["2"], to: ["alice"])
                #expect(texts(try await read(&events, 1)) == ["2"] && id != events.id)
                let bob = try await TestClient(nodes[0].url, "bob")
                _ = try await bob.send(["3"], to: ["bob"])
                var others = try await TestEvents(bob).makeAsyncIterator()
                #expect(texts(try await read(&others, 1)) == ["3"])
            }
            // With their iterators the connections have gone.
            try await until("the streams have ended") { nodes[0].gateway.openStreams == 0 }
            let socket = try await TestSocket.open(alice)
            #expect(try await socket.json()?["messages"] != nil)
        }
    }

    @Test("a stream that is not acceptable is refused")
    func refused() async throws {
        try await withNodes { nodes, _ in
            let alice = try await TestClient(nodes[0].url, "alice")
            var headers = alice.headers("GET", "/v1/events")
            headers.add(name: "Accept", value: "application/json")
            #expect(try await TestEvents(nodes[0].url + "/v1/events", headers).status == 406)
        }
    }

    @Test("a stream whose client is gone ends")
    func clientGone() async throws {
        try await withNodes { nodes, _ in
            let alice = try await TestClient(nodes[0].url, "alice")
            do {
                var events = try await TestEvents(alice).makeAsyncIterator()
                _ = try await alice.send(["x"], to: ["alice"])
                _ = try await events.next()
                #expect(nodes[0].gateway.openStreams == 1)
            }
            // The iterator is gone, and with it the connection.
            try await until("the stream has ended") { nodes[0].gateway.openStreams == 0 }
            #expect(try await alice.mail().texts == ["x"])
        }
    }

    @Test("a graceful shutdown says when to reconnect, and the client continues at another node")
    func shutdown() async throws {
        try await withNodes(2) { nodes, _ in
            let alice = try await TestClient(nodes[0].url, "alice")
            _ = try await alice.send(["1"], to: ["alice"])
            var events = try await TestEvents(alice).makeAsyncIterator()
            #expect(texts(try await read(&events, 1)) == ["1"])
            await nodes[0].services.triggerGracefulShutdown()
            let bye = try await read(&events, 1)[0]
            #expect(bye.name == "bye" && bye.data["reason"] == "restart")
            #expect(events.retry == bye.data["retry"]?.integer && (100...3000).contains(events.retry ?? 0))
            #expect(try await events.next() == nil)
            _ = try await alice.at(nodes[1].url).send(["2"], to: ["alice"])
            var rest = try await TestEvents(alice.at(nodes[1].url), lastEventID: events.id).makeAsyncIterator()
            #expect(texts(try await read(&rest, 1)) == ["2"])
        }
    }

    @Test("streams stay open while Redis is away and go on when it is back; other calls get 503")
    func redisAway() async throws {
        try await withLocalRedis(.init(persistence: .appendOnly(fsync: .always))) { server in
            try await withNodes(on: server) { nodes, _ in
                let alice = try await TestClient(nodes[0].url, "alice")
                _ = try await alice.send(["1"], to: ["alice"])
                var events = try await TestEvents(alice).makeAsyncIterator()
                #expect(texts(try await read(&events, 1)) == ["1"])
                await server.kill()
                let away = try await alice.mail()
                #expect(away.status == 503 && away.problem == "unavailable" && away.body["mayHaveRun"] == false)
                #expect(away.headers["Retry-After"] == ["1"])
                // Clients do not learn where Redis is.
                #expect(!"\(away.body)".contains("127.0.0.1") && !"\(away.body)".contains("\(server.port)"))
                try await server.restart()
                try await until("a send succeeds") { try await alice.send(["2"], to: ["alice"], id: "2").status == 200 }
                #expect(texts(try await read(&events, 1)) == ["2"])
            }
        }
    }
}
