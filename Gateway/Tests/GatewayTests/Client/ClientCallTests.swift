import HTTPTypes
import Hummingbird
import NIOConcurrencyHelpers
import Testing

@testable import GatewayClient

/// Calls of the client to nodes whose replies the test decides.
@Suite("Calls of the client")
struct ClientCallTests {
    /// The reply to a send. The client has chosen the id of the send itself, and does not read that of the reply.
    private let sent = Response.json(#"{"id": "x", "indices": {"bob": [3, 4]}}"#)

    private func send(_ client: GatewayClient) async throws(GatewayError) -> SendReceipt {
        try await client.send([.init(text: "1"), .init(text: "2")], to: ["bob"])
    }

    @Test("a wrong clock is corrected by the 401 that tells the time, and stays corrected")
    func stale() async throws {
        try await FakeGateway.run { received in
            let now = ClientEnvironment.system.now()
            guard abs(received.time - now) < 60_000 else { return .problem(401, "stale", #", "time": \#(now)"#) }
            return sent
        } _: { gateway in
            let client = try gateway.client(clockAhead: 3_600_000)
            #expect(try await send(client).indices == ["bob": 3...4])
            #expect(gateway.received.count == 2)
            _ = try await send(client)
            #expect(gateway.received.count == 3)
        }
    }

    @Test("a used nonce is replaced once, not again and again")
    func nonceUsed() async throws {
        try await FakeGateway.run {
            $0.number == 0 ? .problem(401, "nonce-used") : sent
        } _: { gateway in
            _ = try await send(try gateway.client())
            #expect(gateway.received.count == 2)
            #expect(gateway.received[0].nonce != gateway.received[1].nonce)
            #expect(gateway.received[0].body == gateway.received[1].body)
        }
        try await FakeGateway.run { _ in
            .problem(401, "nonce-used")
        } _: { gateway in
            let client = try gateway.client()
            await expectError(.nonceUsed) { () async throws(GatewayError) in _ = try await send(client) }
            #expect(gateway.received.count == 2)
        }
    }

    @Test("after 503 the same send goes to the next node, not before the time that the reply demands")
    func unavailable() async throws {
        try await FakeGateway.run(2) {
            $0.number == 0 ? .problem(503, "unavailable", #", "mayHaveRun": true"#, retryAfter: 7) : sent
        } _: { gateway in
            _ = try await send(try gateway.client())
            #expect(gateway.received.map(\.node) == [0, 1])
            #expect(gateway.received[0].body == gateway.received[1].body)
            let delays = gateway.delays.withLockedValue { $0 }
            #expect(delays.count == 1 && delays[0] >= .seconds(7))
        }
    }

    private struct Move: Codable { var id: String }
    private struct Board: Codable { var cells: [Int] }

    @Test("a call of the application is repeated at the next node, and its refusal has the reason")
    func application() async throws {
        try await FakeGateway.run(2) { received in
            switch received.number {
            case 0: .problem(500, "internal")
            case 1: .json(#"{"cells": [1, 2], "more": null}"#)
            case 2: .problem(409, "refused", #", "reason": "not-your-turn""#)
            default: .json("[]")
            }
        } _: { gateway in
            let client = try gateway.client()
            let board = try await client.call("/games/move", Move(id: "m1"), reply: Board.self)
            #expect(board.cells == [1, 2])
            #expect(gateway.received.map(\.node) == [0, 1])
            #expect(gateway.received.allSatisfy { $0.method == "POST" && $0.target == "/games/move" })
            #expect(gateway.received.map(\.body) == [#"{"id":"m1"}"#, #"{"id":"m1"}"#])
            let refusal = await expectError(.refused) { () async throws(GatewayError) in
                _ = try await client.call("/games/move", Move(id: "m2"), reply: Board.self)
            }
            #expect(refusal?.reason == "not-your-turn" && refusal?.mayHaveRun == false)
            await expectError(.unexpectedReply) { () async throws(GatewayError) in
                _ = try await client.call("/games/move", Move(id: "m3"), reply: Board.self)
            }
            await expectError(.invalidContent) { () async throws(GatewayError) in
                _ = try await client.call("/games/move", Double.nan, reply: Board.self)
            }
            #expect(gateway.received.count == 4)
        }
    }

    @Test("after 429 the client waits as long as the reply demands, and asks the same node")
    func tooMany() async throws {
        try await FakeGateway.run(2) {
            $0.number == 0 ? .problem(429, "too-many-requests", retryAfter: 3) : sent
        } _: {
            gateway in
            _ = try await send(try gateway.client())
            #expect(gateway.received.map(\.node) == [0, 0])
            let delays = gateway.delays.withLockedValue { $0 }
            #expect(delays.count == 1 && delays[0] >= .seconds(3))
        }
    }

    @Test("a call whose time does not suffice for the delay fails at once, and says whether it may have run")
    func outOfTime() async throws {
        try await FakeGateway.run { received in
            .problem(503, "unavailable", received.number == 0 ? #", "mayHaveRun": false"# : "", retryAfter: 3600)
        } _: { gateway in
            let client = try gateway.client()
            for mayHaveRun in [false, true] {
                let error = await expectError(.unavailable) { () async throws(GatewayError) in
                    _ = try await send(client)
                }
                #expect(error?.mayHaveRun == mayHaveRun && error?.status == 503)
            }
            #expect(gateway.received.count == 2 && gateway.delays.withLockedValue { $0 }.isEmpty)
        }
    }

    @Test("a refusal after a lost reply says that the first attempt may have run")
    func refusalAfterLostReply() async throws {
        try await FakeGateway.run {
            $0.number == 0 ? .problem(500, "internal") : .problem(403, "forbidden")
        } _: {
            gateway in
            let client = try gateway.client()
            let error = await expectError(.forbidden) { () async throws(GatewayError) in _ = try await send(client) }
            #expect(error?.mayHaveRun == true)
        }
    }

    @Test(
        "what another attempt cannot change is not repeated",
        arguments: [
            (429, "mailbox-full"), (409, "id-used"), (403, "forbidden"), (413, "too-large"), (400, "malformed"),
            (401, "bad-signature"),
        ])
    func permanent(status: Int, word: String) async throws {
        try await FakeGateway.run { _ in
            .problem(status, word)
        } _: { gateway in
            let client = try gateway.client()
            await expectError(.init(word)) { () async throws(GatewayError) in _ = try await send(client) }
            #expect(gateway.received.count == 1)
        }
    }

    @Test("a session that has ended is not used again", arguments: ["unknown-session", "logged-in-elsewhere"])
    func ended(word: String) async throws {
        try await FakeGateway.run { _ in
            .problem(401, word)
        } _: { gateway in
            let client = try gateway.client()
            for _ in 0..<2 {
                await expectError(.init(word)) { () async throws(GatewayError) in try await client.acknowledge("c1") }
            }
            #expect(gateway.received.count == 1)
        }
    }

    @Test("a node that cannot be reached is left; the call has not run there")
    func unreachable() async throws {
        var gone: [String] = []
        try await FakeGateway.run { _ in
            sent
        } _: {
            gone = $0.urls
        }
        try await FakeGateway.run { _ in
            sent
        } _: { gateway in
            let session = try gateway.client().session
            func client(_ urls: [String], minDelay: Duration) throws -> GatewayClient {
                var configuration = GatewayClientConfiguration()
                (configuration.minDelay, configuration.maxDelay) = (minDelay, minDelay)
                return GatewayClient(
                    nodes: try NodeList(urls, first: 0), session: session, configuration: configuration,
                    exchange: HTTPExchange(http: HTTPExchange.sharedHTTP), environment: .system)
            }
            _ = try await send(try client(gone + gateway.urls, minDelay: .milliseconds(1)))
            #expect(gateway.received.count == 1)
            // A delay beyond the time of the call: the first failure is the last one.
            let lonely = try client(gone, minDelay: .seconds(3600))
            let error = await expectError(.network) { () async throws(GatewayError) in
                _ = try await send(lonely)
            }
            #expect(error?.mayHaveRun == false)
        }
    }

    @Test("a cancelled call ends without its reply")
    func cancelled() async throws {
        try await FakeGateway.run { _ in
            try await Task.sleep(for: .seconds(3600))
            return sent
        } _: { gateway in
            let client = try gateway.client()
            let call = Task { () async -> GatewayError? in
                do throws(GatewayError) { _ = try await send(client) } catch { return error }
                return nil
            }
            try await until("the call is under way") { gateway.received.count == 1 }
            call.cancel()
            #expect(await call.value?.code == .cancelled)
            #expect(gateway.received.count == 1)
        }
    }
}

/// Expects an error of the client.
@discardableResult
func expectError(
    _ code: GatewayError.Code, sourceLocation: SourceLocation = #_sourceLocation,
    _ operation: () async throws(GatewayError) -> Void
) async -> GatewayError? {
    do throws(GatewayError) { try await operation() } catch {
        #expect(error.code == code, "\(error)", sourceLocation: sourceLocation)
        return error
    }
    Issue.record("no error, expected \(code)", sourceLocation: sourceLocation)
    return nil
}
