#if os(Linux)
    import NIOConcurrencyHelpers
    import Testing

    @testable import Gateway

    /// A thousand connections of one kind, each of which holds up the node as long as it can, beside a client that behaves.
    ///
    /// The addresses of the clients are different ones of the loopback network, which only Linux has.
    @Suite("Attacks", .serialized)
    struct AttackTests {
        enum Kind: String, CaseIterable {
            case header = "a header that does not end"
            case unsigned = "a body that is not signed"
            case login = "a login whose last byte is missing"
            case body = "a body with the name of a session, whose last byte is missing"
            case silentSocket = "a socket that is not authenticated"
            case fragments = "a socket that sends fragments before it is authenticated"

            /// The bytes that the client sends.
            func bytes(_ victim: TestClient) -> [UInt8] {
                func post(_ target: String, _ headers: [String], _ length: Int) -> [UInt8] {
                    let lines = headers + ["Content-Type: application/json", "Content-Length: \(length)"]
                    let head =
                        "POST \(target) HTTP/1.1\r\nHost: gateway\r\n" + lines.map { $0 + "\r\n" }.joined() + "\r\n"
                    return Array((head + String(repeating: " ", count: length - 1)).utf8)
                }
                let upgrade =
                    "GET /v1/socket HTTP/1.1\r\nHost: gateway\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                    + "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                    + "Sec-WebSocket-Protocol: ql.v1\r\n\r\n"
                switch self {
                case .header: return Array("GET /v1/mail HTTP/1.1\r\nHost: gateway\r\n".utf8)
                case .unsigned: return post("/v1/send", [], 100_000)
                case .login: return post("/v1/sessions", [], 16 * 1024)
                case .body:
                    let headers = victim.headers("POST", "/v1/send").map { "\($0.name): \($0.value)" }
                    return post("/v1/send", headers, AttackTests.maxBodyBytes)
                case .silentSocket: return Array(upgrade.utf8)
                case .fragments:
                    return Array(upgrade.utf8) + RawSocket.frame(1, [32], fin: false)
                        + (0..<1000).flatMap { _ in RawSocket.frame(0, [32], fin: false) }
                }
            }

            /// Whether this is the answer of the documentation.
            func isDocumented(_ answer: [UInt8]) -> Bool {
                switch self {
                case .header, .login, .body: answer.isEmpty
                case .unsigned: answer.starts(with: "HTTP/1.1 401 ".utf8)
                case .silentSocket, .fragments: answer.suffix(4) == [0x88, 2, 0x03, 0xF0]
                }
            }
        }

        private static let (maxBodyBytes, maxBodyBytesInFlight) = (64 * 1024, 4 << 20)

        /// Makes a thousand connections, and returns what each has received until it was closed.
        private static func answers(
            _ node: TestNode, _ addresses: [String], sending bytes: @escaping @Sendable () -> [UInt8]
        ) async throws -> [[UInt8]] {
            let (connected, hasConnected) = AsyncStream<Void>.makeStream()
            return try await withThrowingTaskGroup(of: [UInt8].self) { group in
                var iterator = connected.makeAsyncIterator()
                for number in 0..<1000 {
                    // The queue of connections that are not accepted yet is short.
                    if number >= 50 { await iterator.next() }
                    group.addTask {
                        let address = addresses[number % addresses.count]
                        do {
                            return try await withRawConnection(port: node.port, from: address) { connection in
                                hasConnected.yield()
                                // The node may have closed the connection before it has taken all.
                                try? await connection.write(bytes())
                                return try await connection.readToEnd()
                            }
                        } catch {
                            hasConnected.yield()
                            throw error
                        }
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
        }

        @Test("a client that behaves is served beside a thousand connections", arguments: Kind.allCases)
        func attack(kind: Kind) async throws {
            try await withNodes(configure: {
                $0.maxConnectionsOfAddress = 250
                $0.maxBodyBytes = Self.maxBodyBytes
                $0.maxBodyBytesInFlight = Self.maxBodyBytesInFlight
                // A time is short where it ends the attack: a client that behaves may need the others.
                func time(_ isShort: Bool) -> Duration { isShort ? .seconds(10) : .seconds(120) }
                $0.headerTime = time(kind == .header)
                $0.bodyTime = time(kind == .login || kind == .body)
                $0.authenticationTime = time(kind == .silentSocket)
                $0.loginsOfUserPerMinute = 10_000
            }) { nodes, _ in
                let victim = try await TestClient(nodes[0].url, "victim")
                let isOver = NIOLockedValueBox(false)
                async let attack = {
                    defer { isOver.withLockedValue { $0 = true } }
                    return try await Self.answers(nodes[0], (11...14).map { "127.0.0.\($0)" }) { kind.bytes(victim) }
                }()
                var peak = 0
                repeat {
                    // A login of its own: calls of every kind succeed.
                    let bob = try await TestClient(nodes[0].url, "bob")
                    #expect(try await bob.send([String(repeating: "x", count: 40_000)], to: ["bob"]).status == 200)
                    let page = try await bob.mail(after: bob.cursor)
                    #expect(page.status == 200 && page.texts.count == 1)
                    #expect(try await bob.ack(page.cursor).status == 204)
                    let gateway = nodes[0].gateway
                    peak = max(peak, gateway.bodyBytesInFlight)
                    #expect(gateway.bodyBytesInFlight <= Self.maxBodyBytesInFlight)
                } while !isOver.withLockedValue { $0 }
                let answers = try await attack
                #expect(answers.count == 1000)
                let others = answers.filter { !kind.isDocumented($0) }
                #expect(
                    others.isEmpty, "\(others.count): \(others.first.map { String(decoding: $0, as: UTF8.self) } ?? "")"
                )
                #expect(kind == .login || kind == .body || peak <= 40_200)
                try await until("the connections are closed") { nodes[0].gateway.openConnections <= 10 }
            }
        }

        @Test(
            "a thousand connections from one address, or in all, are closed beyond the limit without a reply",
            arguments: [1, 3])
        func connections(addresses: Int) async throws {
            try await withNodes(configure: {
                $0.maxConnectionsOfAddress = 100
                $0.maxConnections = 150
                $0.headerTime = .seconds(10)
                $0.loginsOfUserPerMinute = 10_000
            }) { nodes, _ in
                let isOver = NIOLockedValueBox(false)
                async let attack = {
                    defer { isOver.withLockedValue { $0 = true } }
                    return try await Self.answers(nodes[0], (0..<addresses).map { "127.0.0.\(11 + $0)" }) {
                        Array("GET".utf8)
                    }
                }()
                // The node has room for the client if only one address attacks it.
                repeat {
                    #expect(nodes[0].gateway.openConnections <= (addresses == 1 ? 101 : 150))
                    if addresses == 1 { _ = try await TestClient(nodes[0].url, "alice") }
                    await Task.yield()
                } while !isOver.withLockedValue { $0 }
                let answers = try await attack
                #expect(answers.count == 1000 && answers.allSatisfy { $0.isEmpty })
            }
        }
    }
#endif
