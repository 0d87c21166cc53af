import Foundation
import Gateway
import NIOConcurrencyHelpers
import QueueListen
import RedisDCTesting
import Testing

@testable import GatewayClient

/// The client with nodes of the gateway.
@Suite("The client with a gateway", .timeLimit(.minutes(10)))
struct ClientNodeTests {
    private struct Move: GatewayPayload, Equatable {
        static let messageType = "move"
        var from: String
        var to: String
    }

    static func client(
        _ urls: [String], _ user: String, device: String = "phone",
        _ configure: (inout GatewayClientConfiguration) -> Void = { _ in }
    ) async throws -> GatewayClient {
        var configuration = GatewayClientConfiguration()
        configuration.minDelay = .milliseconds(50)
        configuration.maxDelay = .milliseconds(500)
        configure(&configuration)
        return try await GatewayClient.login(
            to: urls, user: user, device: device, credential: "secret of \(user)", configuration: configuration)
    }

    private static func texts(_ events: [GatewayEvent]) -> [String] {
        events.compactMap { if case .message(let message) = $0 { message.text } else { nil } }
    }

    /// Reads until there are enough events.
    private func read(_ client: GatewayClient, _ count: Int, after cursor: String? = nil) async throws -> [GatewayEvent]
    {
        var events: [GatewayEvent] = []
        for try await event in client.messages(after: cursor) {
            events.append(event)
            if events.count == count { break }
        }
        return events
    }

    @Test(
        "messages of every kind arrive as they were sent, and stay until they are acknowledged",
        arguments: [GatewayClientConfiguration.Transport.events, .poll])
    func content(transport: GatewayClientConfiguration.Transport) async throws {
        try await withNodes(2) { nodes, _ in
            let urls = nodes.map(\.url)
            let alice = try await Self.client(urls, "alice") { $0.transport = transport }
            let bob = try await Self.client(urls, "bob")
            var text = OutgoingMessage(text: "grüß 👋 \"\\\n", type: "chat")
            text.headers = ["language": "de", "a": "b"]
            text.ttl = .seconds(3600)
            let digits = Array(#"{"n":12345678901234567890.10}"#.utf8)
            var exact = OutgoingMessage(text: "")
            exact.content = .json(digits)
            let receipt = try await bob.send(
                [text, OutgoingMessage(bytes: [0xFF, 0x00]), exact], to: ["alice", "bob"], id: "first")
            #expect(receipt == SendReceipt(id: "first", indices: ["alice": 1...3, "bob": 1...3]))
            try await bob.send(Move(from: "e2", to: "e4"), to: ["alice"])
            for _ in 0..<2 {
                let events = try await read(alice, 4)
                let messages = events.compactMap { if case .message(let message) = $0 { message } else { nil } }
                #expect(messages.map(\.content).prefix(3) == [text.content, .bytes([0xFF, 0x00]), .json(digits)])
                #expect(messages[0].headers == text.headers && messages[0].type == "chat" && messages[0].from == "bob")
                #expect(try messages[3].decode(as: Move.self) == Move(from: "e2", to: "e4"))
                #expect(messages.map(\.index) == [1, 2, 3, 4] && Set(messages.map(\.id)).count == 4)
            }
            let second = try #require(try await read(alice, 2).last?.cursor)
            try await alice.acknowledge(second)
            #expect(try await read(alice, 2).compactMap(\.cursor).count == 2)
            let first = try await read(alice, 1)
            #expect(first.first.flatMap { if case .message(let message) = $0 { message.index } else { nil } } == 3)
            await expectError(.cursor) { () async throws(GatewayError) in
                try await alice.acknowledge("00000000000000ff-12-8000000000000001")
            }
        }
    }

    @Test("a send whose reply is lost has one effect")
    func lostReply() async throws {
        try await withNodes { nodes, _ in
            try await withFaultProxy(to: .port(nodes[0].port)) { proxy in
                let alice = try await Self.client(["http://127.0.0.1:\(proxy.port)"], "alice")
                await proxy.dropNextReply(matching: "POST /v1/send")
                #expect(try await alice.send(OutgoingMessage(text: "1"), to: ["alice"]).indices == ["alice": 1...1])
                #expect(try await nodes[0].office.mailbox("alice").inspect()?.count == 1)
            }
        }
    }

    @Test("a session continues in another program, whose clock is wrong")
    func restored() async throws {
        try await withNodes { nodes, _ in
            let first = try await Self.client([nodes[0].url], "alice")
            let data = try JSONEncoder().encode(first.session)
            var environment = ClientEnvironment.system
            environment.now = { ClientEnvironment.system.now() - 7_200_000 }
            let second = GatewayClient(
                nodes: first.nodes, session: try JSONDecoder().decode(GatewaySession.self, from: data),
                configuration: first.configuration, exchange: HTTPExchange(http: HTTPExchange.sharedHTTP),
                environment: environment)
            try await second.send(OutgoingMessage(text: "1"), to: ["alice"])
            #expect(try await Self.texts(read(second, 1)) == ["1"])
        }
    }

    @Test("a loss is reported, and reading continues", arguments: [GatewayClientConfiguration.Transport.events, .poll])
    func gap(transport: GatewayClientConfiguration.Transport) async throws {
        try await withNodes(office: {
            $0.limits.maxMessages = 2
            $0.limits.whenFull = .dropOldest
        }) { nodes, _ in
            let alice = try await Self.client([nodes[0].url], "alice") { $0.transport = transport }
            try await alice.send(OutgoingMessage(text: "1"), to: ["alice"])
            let cursor = try await read(alice, 1)[0].cursor
            try await alice.send([.init(text: "2"), .init(text: "3")], to: ["alice"])
            try await alice.send(OutgoingMessage(text: "4"), to: ["alice"])
            var iterator = alice.messages(after: cursor).makeAsyncIterator()
            var events: [GatewayEvent] = []
            for _ in 0..<3 { events.append(try #require(try await iterator.next())) }
            guard case .gap(let gap) = events[0] else {
                Issue.record("no gap: \(events)")
                return
            }
            #expect(gap.loss == .truncated(first: 3) && Self.texts(events) == ["3", "4"])
            try await nodes[0].office.mailbox("alice").delete()
            guard case .gap(let reset) = try await iterator.next() else {
                Issue.record("no gap after the deletion")
                return
            }
            #expect(reset.loss == .reset)
            try await alice.send(OutgoingMessage(text: "new"), to: ["alice"])
            #expect(Self.texts([try #require(try await iterator.next())]) == ["new"])
        }
    }

    @Test(
        "a newer reader of the device ends the older one",
        arguments: [
            GatewayClientConfiguration.Transport.events, .poll,
        ])
    func superseded(transport: GatewayClientConfiguration.Transport) async throws {
        try await withNodes(2) { nodes, _ in
            let alice = try await Self.client([nodes[0].url], "alice") { $0.transport = transport }
            let other = try GatewayClient(urls: [nodes[1].url], session: alice.session)
            try await alice.send(OutgoingMessage(text: "1"), to: ["alice"])
            let older = Task {
                var events: [GatewayEvent] = []
                for try await event in alice.messages() { events.append(event) }
                return events
            }
            // A reader that is between two polls would begin again, as the newer one.
            try await until("the older reader waits") {
                try await nodes[0].office.mailbox("alice").inspect()?.listeningProcesses == 1
            }
            let newer = Task { try await read(other, 2) }
            let events = try await older.value
            #expect(Self.texts(events) == ["1"] && events.last == .superseded)
            try await alice.send(OutgoingMessage(text: "2"), to: ["alice"])
            #expect(try await Self.texts(newer.value) == ["1", "2"])
        }
    }

    @Test("an expired session ends the reader; a new login continues where the reader was")
    func expiry() async throws {
        try await withNodes(configure: {
            $0.keepAliveInterval = .milliseconds(50)
            $0.sessionLifetime = .seconds(15)
        }) { nodes, _ in
            let bob = try await Self.client([nodes[0].url], "bob")
            let alice = try await Self.client([nodes[0].url], "alice")
            try await bob.send([.init(text: "1"), .init(text: "2")], to: ["alice"])
            var iterator = alice.messages().makeAsyncIterator()
            let first = try #require(try await iterator.next())
            _ = try await iterator.next()
            await expectError(.unknownSession) { () async throws(GatewayError) in _ = try await iterator.next() }
            await expectError(.unknownSession) { () async throws(GatewayError) in
                try await alice.acknowledge(first.cursor ?? "")
            }
            let again = try await Self.client([nodes[0].url], "alice")
            #expect(try await Self.texts(read(again, 1, after: first.cursor)) == ["2"])
        }
    }

    @Test("a newer login of the device ends the older session for good")
    func loggedInElsewhere() async throws {
        try await withNodes { nodes, _ in
            let older = try await Self.client([nodes[0].url], "alice")
            _ = try await Self.client([nodes[0].url], "alice")
            await expectError(.loggedInElsewhere) { () async throws(GatewayError) in
                try await older.send(OutgoingMessage(text: "1"), to: ["alice"])
            }
        }
    }

    @Test("a loop that ends closes its stream; a logout ends the session and forgets the device")
    func ends() async throws {
        try await withNodes { nodes, _ in
            let alice = try await Self.client([nodes[0].url], "alice")
            try await alice.send(OutgoingMessage(text: "1"), to: ["alice"])
            _ = try await read(alice, 1)
            try await until("the stream is closed") { nodes[0].gateway.openStreams == 0 }
            try await alice.logOut()
            try await alice.logOut()
            await expectError(.unknownSession) { () async throws(GatewayError) in try await alice.acknowledge("c") }
            #expect(try await nodes[0].office.mailbox("alice").inspect()?.devices.isEmpty != false)
            await expectError(.badCredential) { () async throws(GatewayError) in
                _ = try await GatewayClient.login(
                    to: [nodes[0].url], user: "alice", device: "phone", credential: "wrong")
            }
        }
    }

    @Test("handlers are called by type, in order, and their messages are acknowledged when they have returned")
    func receiver() async throws {
        try await withNodes { nodes, _ in
            let alice = try await Self.client([nodes[0].url], "alice") { $0.acknowledgePause = .milliseconds(10) }
            let handled = NIOLockedValueBox<[String]>([])
            let failures = NIOLockedValueBox<[GatewayError.Code?]>([])
            var receiver = GatewayReceiver(alice) { _ in }
            receiver.handle(Move.self) { move, message in handled.withLockedValue { $0.append(move.to) } }
            receiver.handleOthers { message in handled.withLockedValue { $0.append(message.text) } }
            receiver.onFailure { error, _ in
                failures.withLockedValue { $0.append((error as? GatewayError)?.code) }
            }
            try await alice.send(Move(from: "e2", to: "e4"), to: ["alice"])
            try await alice.send(OutgoingMessage(text: "not a move", type: "move"), to: ["alice"])
            try await alice.send(OutgoingMessage(text: "other"), to: ["alice"])
            let running = Task { [receiver] in try await receiver.run() }
            try await until("all messages are handled and acknowledged") {
                try await nodes[0].office.mailbox("alice").inspect()?.count == 0
            }
            #expect(handled.withLockedValue { $0 } == ["e4", "other"])
            #expect(failures.withLockedValue { $0 } == [.invalidContent])
            running.cancel()
            await #expect(throws: GatewayError.self) { try await running.value }
        }
    }

    @Test("a message whose handler fails is not acknowledged, those before it are")
    func failingHandler() async throws {
        struct Failure: Error {}
        try await withNodes { nodes, _ in
            let alice = try await Self.client([nodes[0].url], "alice")
            try await alice.send([.init(text: "1"), .init(text: "2"), .init(text: "3")], to: ["alice"])
            var receiver = GatewayReceiver(alice) { _ in }
            receiver.handleOthers { message in if message.text == "2" { throw Failure() } }
            let failing = receiver
            await #expect(throws: Failure.self) { try await failing.run() }
            #expect(try await Self.texts(read(alice, 2)) == ["2", "3"])
        }
    }
}
