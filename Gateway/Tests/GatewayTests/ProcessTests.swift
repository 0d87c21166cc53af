import Foundation
import NIOConcurrencyHelpers
import NIOHTTP1
import QueueListen
import RedisDCTesting
import Testing

@testable import Gateway

/// The stand-alone program: several processes, which die.
@Suite("Processes", .serialized)
struct ProcessTests {
    /// Logs in with a credential that the anonymous gateway accepts.
    private func client(_ node: GatewayProcess, _ user: String) async throws -> TestClient {
        try await TestClient(try await node.url(), user)
    }

    @Test("a stream whose node is killed resumes at another one: nothing lost, nothing twice, order kept")
    func killed() async throws {
        try await withLocalRedis { server in
            var nodes = [try GatewayProcess.node(server), try GatewayProcess.node(server)]
            let alice = try await client(nodes[0], "alice")
            let bob = try await client(nodes[1], "bob")
            let total = 600
            var seen: [Int] = []
            var id: String?
            var kills = 0
            try await withThrowingTaskGroup(of: Void.self) { group in
                let target = NIOLockedValueBox(try await nodes[1].url())
                // The sender repeats a send whose reply is lost, under its id.
                group.addTask {
                    for number in 1...total {
                        try await until("send \(number) succeeds") {
                            let url = target.withLockedValue { $0 }
                            return await (try? bob.at(url).send(["\(number)"], to: ["alice"], id: "\(number)"))?
                                .status == 200
                        }
                    }
                }
                while seen.count < total {
                    let reading = kills % 2
                    // Reads at one node, while the other one serves the sender.
                    let url = try await nodes[reading].url()
                    let other = try await nodes[1 - reading].url()
                    target.withLockedValue { $0 = other }
                    var events = try await TestEvents(alice.at(url), lastEventID: id).makeAsyncIterator()
                    let goal = min(total, seen.count + total / 6)
                    do {
                        while let event = try await events.next() {
                            try #require(event.name == "message", "\(event)")
                            seen.append(Int(event.data["text"]?.string ?? "") ?? 0)
                            // The client resumes after the last message that it has processed, acknowledged or not.
                            id = event.id
                            if seen.count % 50 == 0 {
                                _ = try? await alice.at(other).ack(event.id)
                            }
                            if seen.count == goal { nodes[reading].kill9() }
                        }
                    } catch { #expect(seen.count >= goal, "the stream broke early: \(error)") }
                    nodes[reading] = try GatewayProcess.node(server)
                    kills += 1
                }
                try await group.waitForAll()
            }
            #expect(seen == Array(1...total))
            #expect(kills >= 6)
        }
    }

    @Test(
        "an option that does not exist, is given twice, or has a wrong value ends the program with its name",
        arguments: [
            (["--tls-certifcate", "x"], "there is no option --tls-certifcate"),
            (["--port", "1", "--port=2"], "--port is given twice"), (["--port", "8o80"], "--port is 8o80"),
            (["--port", "65536"], "--port is 65536"), (["--operations-port", "-1"], "--operations-port is -1"),
            (["--host", "--port", "1"], "--host has no value"), (["--jwt-secret", "a", "b"], "--jwt-secret has more"),
            (["serve"], "the first argument is no option"), (["--behind-proxy", "yes"], "--behind-proxy is yes"),
            (["--session-minutes", "0"], "--session-minutes is 0"), (["--log-level", "loud"], "--log-level is loud"),
            (["--jwt-secret", "01234567890123456789012345678901", "--jwt-audience", "a"], "--jwt-issuer is missing"),
            (["--jwt-public-key", "key.pem", "--jwt-issuer", "i"], "--jwt-audience is missing"),
        ])
    func wrongOptions(arguments: [String], message: String) async throws {
        let needed = arguments.contains { $0.hasPrefix("--jwt-") } ? [] : ["--insecure-anonymous", "true"]
        let program = try GatewayProcess(arguments + needed)
        try await until("the program has ended") { !program.isRunning }
        #expect(program.status == 1)
        try await until("it says why") { program.output.contains(message) }
    }

    @Test("the program logs no secret at any level, whether calls succeed or fail")
    func secrets() async throws {
        try await withLocalRedis { server in
            let node = try GatewayProcess.node(server, ["--log-level", "trace"])
            let url = try await node.url()
            let alice = try await client(node, "alice")
            #expect(try await alice.send(["1"], to: ["alice"]).status == 200)
            #expect(try await alice.mail().texts == ["1"])
            let fromPage: HTTPHeaders = ["Cookie": alice.cookie, "Sec-Fetch-Site": "same-origin"]
            var events = try await TestEvents(url + "/v1/events", fromPage).makeAsyncIterator()
            #expect(try await events.next()?.name == "message")
            let socket = try await TestSocket.open(alice)
            #expect(try await socket.json()?["messages"] != nil)
            #expect(try await TestClient.perform("GET", url + "/v1/mail", ["X-Session": alice.session]).status == 401)
            #expect(try await TestClient.login(url, "", "phone", credential: "a secret credential").status == 400)
            #expect(try await alice.call("DELETE", "/v1/sessions").status == 204)
            #expect(try await TestEvents(url + "/v1/events", fromPage).status == 401)
            await server.kill()
            #expect(try await alice.mail().status == 503)
            node.terminate()
            try await until("the node has ended") { !node.isRunning }
            let output = node.output
            #expect(output.contains("trace") || output.contains("debug"), "nothing was logged: \(output)")
            let secret = try #require(alice.cookie.split(separator: ".").last)
            for text in [alice.token, String(secret), "a secret credential"] { #expect(!output.contains(text)) }
        }
    }

    @Test("a request that was used at one node is refused at another")
    func replay() async throws {
        try await withLocalRedis { server in
            let nodes = [try GatewayProcess.node(server), try GatewayProcess.node(server)]
            let alice = try await client(nodes[0], "alice")
            let target = "/v1/mail?wait=0"
            let headers = alice.headers("GET", target)
            #expect(try await TestClient.perform("GET", try await nodes[0].url() + target, headers).status == 200)
            let again = try await TestClient.perform("GET", try await nodes[1].url() + target, headers)
            #expect(again.problem == "nonce-used")
        }
    }

    @Test("SIGTERM ends a thousand streams with bye, then the process; the clients continue at another node")
    func drained() async throws {
        try await withLocalRedis { server in
            let (node, other) = (try GatewayProcess.node(server), try GatewayProcess.node(server))
            let (url, otherURL) = (try await node.url(), try await other.url())
            let count = 1000
            let office = NIOLockedValueBox(0)
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for number in 0..<count {
                    let alice = try await login(server, url, "user\(number)")
                    group.addTask {
                        var events = try await TestEvents(alice).makeAsyncIterator()
                        office.withLockedValue { $0 += 1 }
                        let bye = try await events.next()
                        guard bye?.name == "bye", bye?.data["reason"] == "restart", try await events.next() == nil
                        else {
                            return false
                        }
                        return try await canRead(alice.at(otherURL))
                    }
                }
                try await until("all streams are open") {
                    let page = try await page(node, "/metrics")
                    return office.withLockedValue { $0 } == count && page.contains("gateway_streams \(Double(count))")
                }
                node.terminate()
                var drained = 0
                for try await isDrained in group where isDrained { drained += 1 }
                #expect(drained == count)
            }
            try await until("the node has ended") { !node.isRunning }
            #expect(node.status == 0)
        }
    }

    @Test("SIGTERM ends a thousand sockets with bye and 1001, then the process; the clients continue at another node")
    func drainedSockets() async throws {
        try await withLocalRedis { server in
            let (node, other) = (try GatewayProcess.node(server), try GatewayProcess.node(server))
            let (url, otherURL) = (try await node.url(), try await other.url())
            let count = 1000
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for number in 0..<count {
                    let alice = try await login(server, url, "user\(number)")
                    let socket = try await TestSocket.open(alice)
                    group.addTask {
                        let isBye = try await socket.json()?["bye"]?["reason"] == "restart"
                        guard isBye, try await socket.closeCode() == 1001 else { return false }
                        return try await canRead(alice.at(otherURL))
                    }
                }
                try await until("all sockets are open") {
                    try await page(node, "/metrics").contains("gateway_streams \(Double(count))")
                }
                node.terminate()
                var drained = 0
                for try await isDrained in group where isDrained { drained += 1 }
                #expect(drained == count)
            }
            try await until("the node has ended") { !node.isRunning }
            #expect(node.status == 0)
        }
    }

    @Test("a node that ends does not wait for ever for a client that never completes its request")
    func incompleteRequest() async throws {
        try await withLocalRedis { server in
            let node = try GatewayProcess.node(server, ["--shutdown-seconds", "1"])
            let url = try await node.url()
            let port = try #require(url.split(separator: ":").last.flatMap { Int($0) })
            try await withRawConnection(port: port) { connection in
                try await connection.write(
                    "POST /v1/login HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"
                )
                // The node has accepted the connection before this one.
                _ = try await TestClient.login(url, "alice", "phone")
                node.terminate()
                try await until("the node has ended") { !node.isRunning }
            }
        }
    }

    /// Reads the mailbox, again as long as the node has too much to do.
    private func canRead(_ client: TestClient) async throws -> Bool {
        var status = 503
        try await until("the mailbox can be read") {
            status = try await client.mail().status
            return status != 503
        }
        return status == 200
    }

    /// Logs in; removes the limits of logins, which a thousand users at one address exceed.
    private func login(_ server: LocalRedis, _ url: String, _ user: String) async throws -> TestClient {
        while true {
            let reply = try await TestClient.login(url, user, "phone")
            if reply.status != 429 {
                var client = TestClient(url: url, user: user, device: "phone")
                client.session = reply.body["session"]?.string ?? ""
                client.token = reply.body["token"]?.string ?? ""
                return client
            }
            try await server.removeLimits()
        }
    }

    private func page(_ node: GatewayProcess, _ path: String) async throws -> String {
        let url = try await node.url("operations") + path
        return String(decoding: try await fetch(url).body, as: UTF8.self)
    }

    @Test("the node is ready while Redis answers, and healthy in any case; metrics have an address of their own")
    func health() async throws {
        try await withLocalRedis { server in
            let node = try GatewayProcess.node(server)
            let url = try await node.url()
            let operations = try await node.url("operations")
            for base in [url, operations] {
                #expect(try await fetch(base + "/healthz").status == 200)
                #expect(try await fetch(base + "/readyz").status == 200)
            }
            #expect(try await fetch(url + "/metrics").status == 404)
            let page = try await page(node, "/metrics")
            #expect(page.contains("# TYPE gateway_streams gauge") && page.contains("hb_requests"))
            await server.kill()
            #expect(try await fetch(url + "/readyz").status == 503)
            #expect(try await fetch(url + "/healthz").status == 200)
            try await server.restart()
            try await until("the node is ready again") { try await fetch(url + "/readyz").status == 200 }
        }
    }

    @Test(
        "the program does not start where tokens could be read, or without a way to check users",
        arguments: [
            ["--host", "0.0.0.0", "--jwt-secret", "01234567890123456789012345678901", "--jwt-issuer", "i"]
                + ["--jwt-audience", "a"],
            ["--host", "0.0.0.0", "--insecure-anonymous", "true", "--behind-proxy", "true"], [],
            ["--jwt-secret", "short"],
            ["--insecure-anonymous", "true", "--jwt-secret", "01234567890123456789012345678901"],
            ["--insecure-anonymous", "true", "--tls-key", "x"],
            ["--insecure-anonymous", "true", "--log-level", "loud"],
            ["--insecure-anonymous", "true", "--allow-sends", "some"],
            ["--insecure-anonymous", "true", "--allowed-origins", "chat.example"],
        ])
    func unsafeSettings(arguments: [String]) async throws {
        let process = try GatewayProcess(arguments + ["--port", "0", "--operations-port", "0"])
        try await until("the program has ended") { !process.isRunning }
        #expect(process.status == 1)
        try await until("it says why") { process.output.contains("redisdc-gateway: ") }
        #expect(!process.output.contains("01234567890123456789"))
    }

    @Test("the folder's files are served beside the calls")
    func files() async throws {
        try await withLocalRedis { server in
            let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(at: folder) }
            try Data("<p>chat".utf8).write(to: folder.appendingPathComponent("index.html"))
            let node = try GatewayProcess.node(server, ["--static-folder", folder.path])
            let url = try await node.url()
            #expect(try await fetch(url + "/").body == Array("<p>chat".utf8))
            #expect(try await fetch(url + "/../../etc/passwd").status != 200)
            #expect(try await client(node, "alice").mail().status == 200)
        }
    }
}
