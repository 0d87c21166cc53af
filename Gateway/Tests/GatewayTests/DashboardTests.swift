import AsyncHTTPClient
import Foundation
import Hiredis
import Hummingbird
import NIOConcurrencyHelpers
import NIOCore
import NIOHTTP1
import QueueListen
import RedisDC
import RedisDCTesting
import ServiceLifecycle
import Testing

@testable import Gateway

/// The operators' page and its calls.
@Suite("Dashboard")
struct DashboardTests {
    static let key = "a key of the operators"

    /// A dashboard with an address of its own.
    struct Board: Sendable {
        var url: String
        var redis: RedisClient
        var office: PostOffice
        var coordinator: Coordinator
        var dashboard: Dashboard

        /// Sends a request, as a page of this address does.
        func call(
            _ method: String, _ path: String, _ json: JSON? = nil, cookie: String = "", csrf: String? = nil,
            site: String? = "same-origin"
        ) async throws -> TestClient.Reply {
            var headers: HTTPHeaders = [:]
            if json != nil { headers.add(name: "Content-Type", value: "application/json") }
            if !cookie.isEmpty { headers.add(name: "Cookie", value: cookie) }
            if let csrf { headers.add(name: "X-CSRF-Token", value: csrf) }
            if let site { headers.add(name: "Sec-Fetch-Site", value: site) }
            return try await TestClient.perform(method, url + path, headers, json?.bytes ?? [])
        }

        /// Logs in, and returns the cookie and the CSRF token.
        func logIn() async throws -> (cookie: String, csrf: String) {
            let reply = try await call("POST", "/admin/login", ["key": .string(DashboardTests.key)])
            try #require(reply.status == 204)
            let cookie = String(reply.headers["Set-Cookie"].first?.prefix { $0 != ";" } ?? "")
            let session = try await call("GET", "/admin/session", cookie: cookie)
            return (cookie, try #require(session.body["csrf"]?.string))
        }

        /// Announces and confirms an action. Returns its count.
        func perform(_ action: JSON, _ session: (cookie: String, csrf: String)) async throws -> Int? {
            let announced = try await call(
                "POST", "/admin/announce", action, cookie: session.cookie, csrf: session.csrf)
            let token = try #require(announced.body["confirmation"])
            let reply = try await call(
                "POST", "/admin/confirm", ["confirmation": token], cookie: session.cookie, csrf: session.csrf)
            return reply.body["count"]?.integer
        }

        /// The state that the page shows.
        func snapshot() async throws -> JSON {
            await dashboard.reader.forget()
            return try JSONParser.parse(await dashboard.reader.snapshot())
        }
    }

    private func withBoard(
        now: @escaping @Sendable () -> NIODeadline = { .now() }, letters: [String] = ["dead"],
        interval: Duration = .milliseconds(50),
        _ body: @escaping @Sendable (Board, LocalRedis) async throws -> Void
    ) async throws {
        try await withLocalRedis { server in
            let redis = try RedisClient(url: server.url)
            let office = try PostOffice(redis: redis)
            let coordinator = try Coordinator(redis: redis)
            let log = TestLog()
            let dashboard = Dashboard(
                logins: DashboardLogins(key: Self.key, now: now), redis: redis, office: office,
                coordinator: coordinator, deadLetterMailboxes: letters, interval: interval, logger: log.logger)
            let router = Router(context: TestNode.Context.self)
            dashboard.addRoutes(to: router)
            let (ports, continuation) = AsyncStream<Int>.makeStream()
            let application = Application(
                router: router, server: .plain,
                configuration: ApplicationConfiguration(address: .hostname("127.0.0.1", port: 0)),
                onServerRunning: { continuation.yield($0.localAddress?.port ?? 0) }, logger: log.logger)
            let services = ServiceGroup(services: [redis, office, coordinator, application], logger: log.logger)
            let running = Task { try await services.run() }
            var port: Int?
            for await number in ports {
                port = number
                break
            }
            let board = Board(
                url: "http://127.0.0.1:\(try #require(port))", redis: redis, office: office, coordinator: coordinator,
                dashboard: dashboard)
            let result: Result<Void, any Error>
            do { result = .success(try await body(board, server)) } catch { result = .failure(error) }
            #expect(!log.text.contains(Self.key))
            await services.triggerGracefulShutdown()
            try await running.value
            try result.get()
        }
    }

    @Test("two processes that wait for each other's lock are a deadlock, until one of them gives up")
    func deadlock() async throws {
        try await withBoard { board, server in
            try await withRedisClient(url: server.url) { redis in
                try await withCoordinator(redis: redis) { other in
                    let (one, two) = (board.coordinator, other)
                    try await one.mutex("a").withLock { _ in
                        try await two.mutex("b").withLock { _ in
                            let first = Task { try await one.mutex("b").withLock { _ in } }
                            let second = Task { try await two.mutex("a").withLock { _ in } }
                            try await until("there is a deadlock") {
                                try await board.snapshot()["deadlocks"]?.array?.isEmpty == false
                            }
                            let links = try await board.snapshot()["deadlocks"]?.array?.first?.array ?? []
                            #expect(Set(links.compactMap { $0["resource"]?.string }) == ["a", "b"])
                            first.cancel()
                            second.cancel()
                            _ = (await first.result, await second.result)
                        }
                    }
                    #expect(try await board.snapshot()["deadlocks"]?.array?.isEmpty == true)
                }
            }
        }
    }

    @Test("only the right key logs in; after five wrong ones even that one waits")
    func login() async throws {
        let time = NIOLockedValueBox(NIODeadline.now())
        try await withBoard(now: { time.withLockedValue { $0 } }) { board, _ in
            let page = try await board.call("POST", "/admin/login", ["key": .string(Self.key)])
            let cookie = try #require(page.headers["Set-Cookie"].first)
            #expect(page.status == 204 && page.headers["Set-Cookie"].count == 1)
            for part in ["; HttpOnly", "; SameSite=Strict", "; Path=/admin"] { #expect(cookie.contains(part)) }
            for number in 0..<DashboardLogins.maxFailures {
                let wrong = try await board.call("POST", "/admin/login", ["key": .string("wrong \(number)")])
                #expect(wrong.status == 401 && wrong.headers["Set-Cookie"].isEmpty)
            }
            let limited = try await board.call("POST", "/admin/login", ["key": .string(Self.key)])
            #expect(limited.status == 429 && limited.headers["Retry-After"].count == 1)
            #expect(limited.headers["Set-Cookie"].isEmpty)
            time.withLockedValue { $0 = $0 + DashboardLogins.failurePeriod }
            #expect(try await board.call("POST", "/admin/login", ["key": .string(Self.key)]).status == 204)
        }
    }

    @Test("without a session nothing is shown and nothing changes; a session ends by logout and by time")
    func sessions() async throws {
        let time = NIOLockedValueBox(NIODeadline.now())
        try await withBoard(now: { time.withLockedValue { $0 } }) { board, _ in
            let calls = ["session", "events", "announce", "confirm", "logout"]
            for path in calls {
                let isRead = path == "session" || path == "events"
                for cookie in ["", "redisdc-admin=", "redisdc-admin=wrong"] {
                    let reply = try await board.call(
                        isRead ? "GET" : "POST", "/admin/\(path)", isRead ? nil : [:], cookie: cookie, csrf: "x")
                    #expect(reply.status == 401, "\(path) \(cookie)")
                }
            }
            let first = try await board.logIn()
            #expect(
                try await board.call("POST", "/admin/logout", [:], cookie: first.cookie, csrf: first.csrf).status == 204
            )
            #expect(try await board.call("GET", "/admin/session", cookie: first.cookie).status == 401)
            let second = try await board.logIn()
            time.withLockedValue { $0 = $0 + DashboardLogins.lifetime }
            #expect(try await board.call("GET", "/admin/session", cookie: second.cookie).status == 401)
        }
    }

    @Test("a change needs the CSRF token of its session, JSON, and a page of the same site")
    func csrf() async throws {
        try await withBoard { board, _ in
            let (session, other) = (try await board.logIn(), try await board.logIn())
            let action: JSON = ["action": "release", "resource": "lock"]
            func status(csrf: String?, site: String? = "same-origin") async throws -> Int {
                try await board.call(
                    "POST", "/admin/announce", action, cookie: session.cookie, csrf: csrf, site: site
                ).status
            }
            #expect(try await status(csrf: nil) == 403)
            #expect(try await status(csrf: "") == 403)
            #expect(try await status(csrf: other.csrf) == 403)
            #expect(try await status(csrf: session.csrf, site: "cross-site") == 403)
            #expect(try await status(csrf: session.csrf, site: "same-site") == 403)
            #expect(try await status(csrf: session.csrf) == 200)
            let form = try await TestClient.perform(
                "POST", board.url + "/admin/announce",
                ["Cookie": session.cookie, "X-CSRF-Token": session.csrf, "Content-Type": "text/plain"], action.bytes)
            #expect(form.status == 415)
        }
    }

    @Test("every reply has the strict headers, and the page has no script or style of its own")
    func headers() async throws {
        try await withBoard { board, _ in
            for path in ["/admin", "/admin/admin.css", "/admin/admin.js", "/admin/session"] {
                let reply = try await board.call("GET", path)
                let policy = reply.headers["Content-Security-Policy"].first ?? ""
                #expect(policy.hasPrefix("default-src 'none'; script-src 'self'; style-src 'self'"), "\(path)")
                #expect(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"))
                #expect(reply.headers["Cache-Control"] == ["no-store"])
                #expect(reply.headers["X-Content-Type-Options"] == ["nosniff"])
            }
            let page = String(decoding: try await fetch(board.url + "/admin").body, as: UTF8.self)
            #expect(page.contains("<h1>") && !page.contains("style=") && !page.contains("<style"))
            #expect(page.ranges(of: "<script").count == 1 && page.contains(#"src="/admin/admin.js""#))
            #expect(!page.contains(" on"), "no handler in an attribute")
            let script = String(decoding: try await fetch(board.url + "/admin/admin.js").body, as: UTF8.self)
            for word in ["innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "setAttribute"] {
                #expect(!script.contains(word), "\(word)")
            }
        }
    }

    @Test("a forced release takes the resource from its holder, after its own confirmation and once")
    func release() async throws {
        try await withBoard { board, _ in
            let session = try await board.logIn()
            let mutex = try board.coordinator.mutex("lock <b>")
            let isHeld = NIOLockedValueBox(false)
            let holder = Task {
                try await mutex.withLock { _ in
                    isHeld.withLockedValue { $0 = true }
                    try await Task.sleep(for: .seconds(3600))
                }
            }
            try await until("the mutex is held") { isHeld.withLockedValue { $0 } }
            let row = try #require(try await board.snapshot()["resources"]?.array?.first)
            #expect(row["name"] == "lock <b>" && row["kind"]?.string == "mutex")
            let id = try #require(row["holders"]?.array?.first?["id"])
            #expect(row["holders"]?.array?.first?["fence"]?.string?.isEmpty == false)
            func post(_ path: String, _ json: JSON) async throws -> TestClient.Reply {
                try await board.call("POST", "/admin/\(path)", json, cookie: session.cookie, csrf: session.csrf)
            }
            let action: JSON = ["action": "release", "resource": "lock <b>", "holder": id]
            let announced = try await post("announce", action)
            #expect(announced.body["question"]?.string?.contains("lock <b>") == true)
            // Without the confirmation nothing has changed.
            #expect(try await post("confirm", ["confirmation": "wrong"]).status == 403)
            #expect(try await board.coordinator.inspect("lock <b>")?.holderCount == 1)
            let token = try #require(announced.body["confirmation"])
            let other = try await board.logIn()
            let stolen = try await board.call(
                "POST", "/admin/confirm", ["confirmation": token], cookie: other.cookie, csrf: other.csrf)
            #expect(stolen.status == 403)
            let again = try await post("announce", action)
            let confirmation: JSON = ["confirmation": try #require(again.body["confirmation"])]
            // A later announcement replaces the earlier one.
            #expect(try await post("confirm", ["confirmation": token]).status == 403)
            #expect(try await post("confirm", confirmation).body["count"] == 1)
            #expect(try await post("confirm", confirmation).status == 403)
            await #expect(throws: (any Error).self) { try await holder.value }
            // Another one can have it.
            try await mutex.withLock { _ in }
        }
    }

    @Test("a confirmation expires")
    func confirmationExpires() async throws {
        let time = NIOLockedValueBox(NIODeadline.now())
        try await withBoard(now: { time.withLockedValue { $0 } }) { board, _ in
            let session = try await board.logIn()
            let announced = try await board.call(
                "POST", "/admin/announce", ["action": "release", "resource": "lock"], cookie: session.cookie,
                csrf: session.csrf)
            time.withLockedValue { $0 = $0 + DashboardLogins.confirmationLifetime }
            let reply = try await board.call(
                "POST", "/admin/confirm", ["confirmation": try #require(announced.body["confirmation"])],
                cookie: session.cookie, csrf: session.csrf)
            #expect(reply.status == 403)
        }
    }

    @Test("waits, mailboxes, readers and dead letters are shown, without the contents of messages")
    func shown() async throws {
        try await withBoard { board, _ in
            let mutex = try board.coordinator.mutex("busy")
            let isHeld = NIOLockedValueBox(false)
            let holder = Task {
                try await mutex.withLock { _ in
                    isHeld.withLockedValue { $0 = true }
                    try await Task.sleep(for: .seconds(3600))
                }
            }
            try await until("the mutex is held") { isHeld.withLockedValue { $0 } }
            let waiter = Task { try await mutex.withLock { _ in } }
            defer {
                holder.cancel()
                waiter.cancel()
            }
            _ = try await board.office.mailbox("alice").listen(device: "phone", timeout: .zero)
            try await board.office.send("a secret text", to: "alice", id: "1")
            try await board.office.send(
                Message(text: "a secret text", type: "move", headers: ["dead-letter-mailbox": "alice"]), to: "dead",
                id: "2")
            try await until("the wait is shown") {
                try await board.snapshot()["resources"]?.array?.first?["waiters"]?.array?.count == 1
            }
            let state = try await board.snapshot()
            let text = String(decoding: state.bytes, as: UTF8.self)
            #expect(!text.contains("secret"))
            #expect(state["sessions"]?.integer == 1 && state["isEveryResource"] == true)
            let alice = try #require(state["mailboxes"]?.array?.first { $0["name"] == "alice" })
            #expect(alice["count"] == 1 && alice["devices"]?.array?.first?["name"] == "phone")
            #expect(alice["devices"]?.array?.first?["lag"] == 1)
            let letters = try #require(state["deadLetters"]?.array?.first)
            #expect(letters["count"] == 1 && letters["letters"]?.array?.first?["from"] == "alice")
            // The stream of the page delivers the same.
            let session = try await board.logIn()
            var events = try await TestEvents(board.url + "/admin/events", ["Cookie": session.cookie])
                .makeAsyncIterator()
            let event = try #require(try await events.next())
            #expect(event.name == "snapshot" && event.data["namespace"] == "default")
            #expect(try await events.next()?.name == "snapshot")
        }
    }

    @Test("a mailbox is shown whatever character its name begins with, and two spellings are two mailboxes")
    func mailboxNames() async throws {
        try await withBoard { board, _ in
            let names = ["\u{301}accent", "\u{200D}joined", "b\u{F6}b", "bo\u{308}b", "a:b"]
            for name in names { try await board.office.send("x", to: name) }
            let shown = try await board.snapshot()["mailboxes"]?.array?.compactMap { $0["name"]?.string } ?? []
            #expect(
                shown.count == names.count && Set(shown.map { Array($0.utf8) }) == Set(names.map { Array($0.utf8) }))
        }
    }

    @Test("dead letters are sent again to where they came from, once, and the oldest first")
    func requeue() async throws {
        try await withBoard { board, _ in
            let session = try await board.logIn()
            for number in 1...3 {
                let headers = [
                    "dead-letter-mailbox": "alice", "dead-letter-index": "\(number)", "dead-letter-reason": "x",
                    "kept": "yes",
                ]
                try await board.office.send(
                    Message(text: "\(number)", type: "move", headers: headers), to: "dead", id: "\(number)")
            }
            let action: JSON = ["action": "requeue", "mailbox": "dead", "count": 2]
            #expect(try await board.perform(action, session) == 2)
            let messages = try await board.office.mailbox("alice").peek()
            #expect(messages.map(\.text) == ["1", "2"] && messages.allSatisfy { $0.headers == ["kept": "yes"] })
            #expect(messages.allSatisfy { $0.type == "move" })
            #expect(try await board.snapshot()["deadLetters"]?.array?.first?["count"] == 1)
            #expect(try await board.perform(action, session) == 1)
            #expect(try await board.perform(action, session) == 0)
            #expect(try await board.office.mailbox("alice").count == 3)
        }
    }

    @Test("a message that is no dead letter is not sent anywhere, and the operator is told what to do")
    func foreignMessage() async throws {
        try await withBoard { board, _ in
            let session = try await board.logIn()
            try await board.office.send("a message", to: "dead", id: "1")
            try await board.office.send(
                Message(text: "a letter", headers: ["dead-letter-mailbox": "alice"]), to: "dead", id: "2")
            let action: JSON = ["action": "requeue", "mailbox": "dead", "count": 10]
            let announced = try await board.call(
                "POST", "/admin/announce", action, cookie: session.cookie, csrf: session.csrf)
            let reply = try await board.call(
                "POST", "/admin/confirm", ["confirmation": try #require(announced.body["confirmation"])],
                cookie: session.cookie, csrf: session.csrf)
            #expect(reply.status == 409 && reply.problem == "refused")
            #expect(reply.body["detail"]?.string?.contains("message 1 of dead") == true)
            #expect(try await board.office.mailbox("alice").count == 0)
            let dead = try board.office.mailbox("dead")
            let message = try #require(try await dead.peek().first)
            try await dead.acknowledge(message.cursor, device: DeadLetters.device)
            #expect(try await board.perform(action, session) == 1)
            #expect(try await board.office.mailbox("alice").peek().map(\.text) == ["a letter"])
        }
    }

    @Test("an open page does not hold up the end of the program")
    func shutdown() async throws {
        try await withLocalRedis { server in
            // Longer than the wait below.
            let node = try GatewayProcess.node(server, ["--admin-key", Self.key, "--shutdown-seconds", "3600"])
            let url = try await node.url("operations")
            let login = try await TestClient.perform(
                "POST", url + "/admin/login", ["Content-Type": "application/json", "Sec-Fetch-Site": "same-origin"],
                (["key": .string(Self.key)] as JSON).bytes)
            let cookie = String(login.headers["Set-Cookie"].first?.prefix { $0 != ";" } ?? "")
            var events = try await TestEvents(url + "/admin/events", ["Cookie": cookie]).makeAsyncIterator()
            #expect(try await events.next()?.name == "snapshot")
            node.terminate()
            try await until("the program has ended") { !node.isRunning }
            #expect(node.status == 0)
        }
    }

    @Test("the program has the page only with a key, and only at the operations address")
    func program() async throws {
        try await withLocalRedis { server in
            let node = try GatewayProcess.node(server)
            #expect(try await fetch(try await node.url("operations") + "/admin").status == 404)
            let other = try GatewayProcess.node(server, ["--admin-key", Self.key])
            #expect(try await fetch(try await other.url("operations") + "/admin").status == 200)
            #expect(try await fetch(try await other.url() + "/admin").status == 404)
            for arguments in [["--admin-key", "short"], ["--admin-key", Self.key, "--operations-host", "0.0.0.0"]] {
                let refused = try GatewayProcess.node(server, arguments)
                try await until("the program has ended") { !refused.isRunning }
                #expect(refused.status == 1)
                try await until("it says why") { refused.output.contains("--admin-key") }
                #expect(!refused.output.contains(Self.key))
            }
        }
    }

    @Test("a refresh has a maximum cost, and pages that ask within the interval share it")
    func bounded() async throws {
        try await withBoard(interval: .seconds(3600)) { board, _ in
            for number in 0..<300 {
                try await board.coordinator.semaphore("s\(number)", permits: 1).withPermit { _ in }
            }
            for number in 0..<200 { try await board.office.send("x", to: "box\(number)", id: "\(number)") }
            _ = try await board.redis.send("CONFIG", "RESETSTAT")
            let state = try await board.snapshot()
            #expect(state["resources"]?.array?.count == 200 && state["isEveryResource"] == false)
            #expect(state["mailboxes"]?.array?.count == DashboardReader.maxMailboxes)
            #expect(state["isEveryMailbox"] == false)
            func calls() async throws -> Int {
                let text = try await board.redis.send("INFO", "commandstats").string ?? ""
                let line = text.split(whereSeparator: \.isNewline).first { $0.hasPrefix("cmdstat_scan:") } ?? ""
                return Int(line.dropFirst("cmdstat_scan:calls=".count).prefix { $0 != "," }) ?? 0
            }
            let once = try await calls()
            #expect((1...DashboardReader.maxScans).contains(once))
            for _ in 0..<5 { _ = await board.dashboard.reader.snapshot() }
            #expect(try await calls() == once)
            _ = try await board.snapshot()
            #expect(try await calls() == 2 * once)
        }
    }
}
