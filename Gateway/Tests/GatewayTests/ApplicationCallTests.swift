import HTTPTypes
import Hummingbird
import NIOConcurrencyHelpers
import NIOHTTP1
import QueueListen
import RedisDC
import Testing

@testable import Gateway

/// Calls of an application that mounts the gateway.
@Suite("Calls of the application", .timeLimit(.minutes(10)))
struct ApplicationCallTests {
    private struct Move: Codable, Sendable {
        struct Place: Codable, Sendable { var cell: Int }
        var id: String
        var place: Place
    }
    private struct Answer: Codable, Sendable { var moves: [String] }
    private struct Unexpected: Error {}

    /// Runs a node whose call records the moves.
    private func withCall(
        configure: (inout GatewayConfiguration) -> Void = { _ in },
        _ body: @escaping @Sendable (TestNode, TestClient, NIOLockedValueBox<[String]>) async throws -> Void
    ) async throws {
        let moves = NIOLockedValueBox<[String]>([])
        try await withNodes(
            configure: configure,
            addCalls: { gateway, router in
                gateway.addCall("/games/move", to: router) { (move: Move, caller) in
                    switch move.place.cell {
                    case 10: throw CallRefusal("not-your-turn", "it is the turn of bob")
                    case 11: throw QueueListenError(.mailboxFull, "the mailbox is full")
                    case 12: throw Unexpected()
                    case 15:
                        // The calls that another request may make while this one waits for a lock.
                        try await gateway.check(caller)
                        try await gateway.logout(caller)
                        try await gateway.check(Caller(user: caller.user, device: caller.device))
                        try await gateway.check(caller)
                    case 14: throw CallUnavailable("the shop is closed", mayHaveRun: false)
                    case 13: throw QueueListenError(.connectionLost, "the connection was lost", mayHaveRun: true)
                    case 16: throw RedisDCError(.stopped, "the coordinator is stopped")
                    case 17: throw QueueListenError(.wrongType, "the key ql:secret has another type")
                    default: break
                    }
                    return Answer(
                        moves: moves.withLockedValue {
                            $0.append("\(caller.user) at the \(caller.device): \(move.id), \(move.place.cell)")
                            return $0
                        })
                }
            }
        ) { nodes, _ in
            try await body(nodes[0], try await TestClient(nodes[0].url, "alice"), moves)
        }
    }

    private func move(_ cell: Int) -> JSON { ["id": "m1", "place": ["cell": JSON(cell)]] }

    @Test("callers are equal if their names have the same bytes")
    func callers() {
        let names = ["b\u{F6}b", "bo\u{308}b", "bob"]
        let callers = names.flatMap { user in names.map { Caller(user: user, device: $0) } }
        #expect(Set(callers).count == 9)
        for (place, caller) in callers.enumerated() {
            #expect(callers.firstIndex(of: caller) == place)
            #expect(caller == Caller(user: caller.user, device: caller.device))
        }
    }

    @Test("a signed call reaches the application with its user, and returns the application's reply")
    func call() async throws {
        try await withCall { _, alice, moves in
            let reply = try await alice.call("POST", "/games/move", move(3))
            #expect(reply.status == 200)
            #expect(reply.body["moves"]?.array?.compactMap(\.string) == ["alice at the phone: m1, 3"])
            #expect(reply.headers["Content-Type"] == ["application/json"])
            #expect(reply.headers["Cache-Control"] == ["no-store"])
        }
    }

    @Test("a call finds out that its session has ended since it was verified")
    func ended() async throws {
        try await withCall { _, alice, moves in
            let reply = try await alice.call("POST", "/games/move", move(15))
            #expect(reply.status == 401 && reply.problem == "unknown-session")
            #expect(moves.withLockedValue { $0 } == [])
        }
    }

    @Test("a call that is not signed, or not for this content, does not reach the application")
    func unsigned() async throws {
        try await withCall { node, alice, moves in
            let (target, body) = ("/games/move", move(3).bytes)
            let json: HTTPHeaders = ["Content-Type": "application/json"]
            let unsigned = try await TestClient.perform("POST", node.url + target, json, body)
            #expect(unsigned.status == 401 && unsigned.problem == "unsigned")
            let other = alice.headers("POST", target, move(4).bytes)
            let forged = try await TestClient.perform("POST", node.url + target, other, body)
            #expect(forged.status == 401 && forged.problem == "bad-signature")
            let headers = alice.headers("POST", target, body)
            for expected in [200, 401] {
                let reply = try await TestClient.perform("POST", node.url + target, headers, body)
                #expect(reply.status == expected, "the second one repeats the nonce")
            }
            _ = try await alice.call("DELETE", "/v1/sessions")
            #expect(try await alice.call("POST", target, move(3)).problem == "unknown-session")
            #expect(moves.withLockedValue { $0.count } == 1)
        }
    }

    @Test("content of the wrong form is refused, and the error names the place but no value")
    func malformed() async throws {
        try await withCall(configure: { $0.maxBodyBytes = 1000 }) { node, alice, moves in
            let contents: [(JSON, String)] = [
                (["id": "secret"], "place is missing"),
                (["id": "secret", "place": ["cell": "secret"]], "place.cell is no Int"),
                (["id": .null, "place": ["cell": 1]], "id is null"),
            ]
            for (content, detail) in contents {
                let reply = try await alice.call("POST", "/games/move", content)
                #expect(reply.status == 400 && reply.problem == "malformed")
                let text = reply.body["detail"]?.string ?? ""
                #expect(text.hasSuffix(detail) && !text.contains("secret"), "\(text)")
            }
            #expect(try await alice.call("POST", "/games/move").status == 415)
            let long: JSON = ["id": .string(String(repeating: "x", count: 1000)), "place": ["cell": 1]]
            #expect(try await alice.call("POST", "/games/move", long).status == 413)
            let get = try await alice.call("GET", "/games/move")
            #expect(get.status == 405 && get.headers["Allow"] == ["POST"])
            #expect(moves.withLockedValue { $0.isEmpty })
        }
    }

    @Test(
        "a refusal arrives with its reason, an error of the toolkit as one of the gateway, and another one without its text"
    )
    func refusal() async throws {
        try await withCall { node, alice, _ in
            let refused = try await alice.call("POST", "/games/move", move(10))
            #expect(refused.status == 409 && refused.problem == "refused")
            #expect(refused.body["reason"] == "not-your-turn" && refused.body["detail"] == "it is the turn of bob")
            #expect(try await alice.call("POST", "/games/move", move(11)).problem == "mailbox-full")
            let failed = try await alice.call("POST", "/games/move", move(12))
            #expect(failed.status == 500 && failed.problem == "internal")
            #expect(failed.body["detail"] == "an internal error" && node.log.text.contains("Unexpected"))
            let lost = try await alice.call("POST", "/games/move", move(13))
            #expect(lost.status == 503 && lost.body["mayHaveRun"] == true)
            let closed = try await alice.call("POST", "/games/move", move(14))
            #expect(closed.problem == "unavailable" && closed.body["mayHaveRun"] == false)
            #expect(closed.status == 503 && closed.body["detail"] == "the shop is closed")
            #expect(try await alice.call("POST", "/games/move", move(16)).status == 503)
            let wrong = try await alice.call("POST", "/games/move", move(17))
            #expect(wrong.problem == "internal" && wrong.body["detail"]?.string?.contains("ql:secret") == false)
            #expect(node.log.text.contains("ql:secret"))
        }
    }

    @Test("a route of the application that passes on a problem is answered as a call of the gateway")
    func ownRoute() async throws {
        try await withNodes(addCalls: { _, router in
            router.get("/shop") { _, _ -> Response in throw Problem(.forbidden, "the shop is closed") }
        }) { nodes, _ in
            let reply = try await TestClient.perform("GET", nodes[0].url + "/shop", [:])
            #expect(reply.status == 403 && reply.problem == "forbidden")
            #expect(reply.headers["Content-Type"] == ["application/problem+json"])
        }
    }
}
