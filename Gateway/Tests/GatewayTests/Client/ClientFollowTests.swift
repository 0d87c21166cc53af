import Hummingbird
import NIOConcurrencyHelpers
import Testing

@testable import GatewayClient

/// Readers at nodes whose replies the test decides.
@Suite("Readers of the client", .timeLimit(.minutes(10)))
struct ClientFollowTests {
    /// Reads events until there are enough.
    private func read(_ client: GatewayClient, _ count: Int) async throws -> [GatewayEvent] {
        var events: [GatewayEvent] = []
        for try await event in client.messages() {
            events.append(event)
            if events.count == count { break }
        }
        return events
    }

    private func texts(_ events: [GatewayEvent]) -> [String] {
        events.compactMap { if case .message(let message) = $0 { message.text } else { nil } }
    }

    @Test("a stream that ends is resumed at the next node after the last event, also one without data")
    func resumes() async throws {
        try await FakeGateway.run(2) { received in
            switch received.number {
            case 0: .events("retry: 5000\n\n" + Response.event(1) + Response.event(2))
            case 1: .events(Response.event(2) + Response.event(3) + "id: c9\n\n")
            default: .events(Response.event(10), isOpen: true)
            }
        } _: { gateway in
            let seen = try await read(try gateway.client(), 4)
            #expect(texts(seen) == ["1", "2", "3", "10"])
            #expect(
                gateway.received.map(\.target)
                    == ["/v1/events", "/v1/events?after=c2", "/v1/events?after=c9"])
            #expect(gateway.received.map(\.node) == [0, 1, 0])
            // The second node is tried soon, then the delay is that of the stream.
            let delays = gateway.delays.withLockedValue { $0 }
            #expect(delays.count == 2 && delays.allSatisfy { $0 >= .milliseconds(625) && $0 <= .milliseconds(1250) })
        }
    }

    @Test("the last position is acknowledged after the time of a call is over, without another message")
    func acknowledgement() async throws {
        try await FakeGateway.run { received in
            if received.target == "/v1/ack" {
                // The calls of two attempts fail, with all of their repetitions.
                return received.number < 8
                    ? Response(status: .serviceUnavailable) : Response(status: .noContent)
            }
            return .events(Response.event(1), isOpen: true)
        } _: { gateway in
            var configuration = GatewayClientConfiguration()
            configuration.callTimeout = .milliseconds(1)
            configuration.requestTimeout = .seconds(10)
            configuration.acknowledgePause = .milliseconds(1)
            var receiver = GatewayReceiver(try gateway.client(configuration)) { _ in }
            receiver.handleOthers { _ in }
            let running = Task { [receiver] in try await receiver.run() }
            try await until("the acknowledgement has arrived") {
                gateway.received.contains { $0.target == "/v1/ack" && $0.number >= 8 }
            }
            running.cancel()
            _ = await running.result
            #expect(gateway.received.allSatisfy { $0.target != "/v1/ack" || $0.body.contains("c1") })
        }
    }

    @Test("with one node the delay is the one that the stream names")
    func retryDelay() async throws {
        try await FakeGateway.run { received in
            received.number < 2
                ? .events("retry: 8000\n\n") : .events(Response.event(1), isOpen: true)
        } _: { gateway in
            let seen = try await read(try gateway.client(), 1)
            #expect(texts(seen) == ["1"])
            let delays = gateway.delays.withLockedValue { $0 }
            #expect(delays.count == 2 && delays[0] >= .seconds(4) && delays[0] <= .seconds(8))
            #expect(delays[1] >= .seconds(8))
        }
    }

    @Test("bye names the delay, and the stream continues at the other node")
    func bye() async throws {
        try await FakeGateway.run(2) { received in
            received.number == 0
                ? .events(
                    Response.event(1) + "retry: 1234\nevent: bye\ndata: {\"reason\": \"restart\", \"retry\": 1234}\n\n",
                    isOpen: true)
                : .events(Response.event(2), isOpen: true)
        } _: { gateway in
            let seen = try await read(try gateway.client(), 2)
            #expect(texts(seen) == ["1", "2"])
            #expect(gateway.delays.withLockedValue { $0 } == [.milliseconds(1234)])
            #expect(gateway.received.map(\.node) == [0, 1])
        }
    }

    @Test("a session that expires ends the sequence with its error")
    func expired() async throws {
        try await FakeGateway.run { _ in
            .events("event: bye\ndata: {\"reason\": \"expired\", \"retry\": 1}\n\n", isOpen: true)
        } _: { gateway in
            let client = try gateway.client()
            var iterator = client.messages().makeAsyncIterator()
            await expectError(.unknownSession) { () async throws(GatewayError) in _ = try await iterator.next() }
            #expect(try await iterator.next() == nil)
            await expectError(.unknownSession) { () async throws(GatewayError) in try await client.acknowledge("c") }
            #expect(gateway.received.count == 1)
        }
    }

    @Test("where event streams do not pass, the mailbox is polled; later streams are tried again")
    func fallback() async throws {
        let passes = NIOLockedValueBox(false)
        try await FakeGateway.run { received in
            if received.target.hasPrefix("/v1/events") {
                return passes.withLockedValue { $0 }
                    ? .events(Response.event(4), isOpen: true) : .json("<html>", status: .badGateway)
            }
            switch received.target {
            case "/v1/mail?wait=0": return .page([1], cursor: "c1")
            case "/v1/mail?wait=25&after=c1": return .page([], status: "timedOut", cursor: "c1")
            default: return .problem(400, "malformed")
            }
        } _: { gateway in
            var configuration = GatewayClientConfiguration()
            configuration.eventsAgain = .milliseconds(50)
            let client = try gateway.client(configuration)
            var iterator = client.messages().makeAsyncIterator()
            #expect(texts([try #require(try await iterator.next())]) == ["1"])
            passes.withLockedValue { $0 = true }
            #expect(texts([try #require(try await iterator.next())]) == ["4"])
            #expect(gateway.received.last?.target == "/v1/events?after=c1")
        }
    }

    @Test("a dead node does not change the transport while another one was not tried")
    func deadNode() async throws {
        try await FakeGateway.run(3) { received in
            received.node < 2 ? .json("<html>", status: .badGateway) : .events(Response.event(1), isOpen: true)
        } _: { gateway in
            let seen = try await read(try gateway.client(), 1)
            #expect(texts(seen) == ["1"])
            #expect(gateway.received.allSatisfy { $0.target == "/v1/events" })
        }
    }

    @Test("polls continue after gaps, and end when they are superseded")
    func polls() async throws {
        try await FakeGateway.run { received in
            switch received.number {
            case 0:
                .json(#"{"status": "truncated", "first": 7, "messages": [], "cursor": "c6", "skipped": 0}"#)
            case 1: .page([7, 8], cursor: "c9")
            default: .page([], status: "superseded", cursor: "c9")
            }
        } _: { gateway in
            var configuration = GatewayClientConfiguration()
            configuration.transport = .poll
            configuration.pollWait = 5
            var events: [GatewayEvent] = []
            for try await event in try gateway.client(configuration).messages(after: "c5") { events.append(event) }
            #expect(
                events.first
                    == .gap(try GatewayGap(status: "truncated", first: 7, cursor: "c6")))
            #expect(texts(events) == ["7", "8"] && events.last == .superseded && events.count == 4)
            #expect(
                gateway.received.map(\.target)
                    == ["/v1/mail?wait=0&after=c5", "/v1/mail?wait=5&after=c6", "/v1/mail?wait=5&after=c9"])
        }
    }

    @Test("a stream that is silent for too long is given up, and one that does not begin")
    func silence() async throws {
        let resumed = NIOLockedValueBox(0)
        try await FakeGateway.run { received in
            // A client that stands still may give up the first stream before it has read the event.
            guard received.target.contains("after=") else { return .events(Response.event(1), isOpen: true) }
            let number = resumed.withLockedValue {
                $0 += 1
                return $0
            }
            return .events(number == 1 ? "" : Response.event(2), isOpen: true)
        } _: { gateway in
            var configuration = GatewayClientConfiguration()
            configuration.transport = .events
            (configuration.silenceTimeout, configuration.openTimeout) = (.milliseconds(500), .seconds(5))
            let seen = try await read(try gateway.client(configuration), 2)
            #expect(texts(seen) == ["1", "2"])
            #expect(resumed.withLockedValue { $0 } >= 2)
        }
    }

    @Test("a cancelled reader ends, whether it reads, polls or waits to connect again", arguments: 0..<3)
    func cancelled(kind: Int) async throws {
        let waiting = NIOLockedValueBox(false)
        try await FakeGateway.run { received in
            if kind == 2 { return .problem(503, "unavailable", retryAfter: 1) }
            if received.target.hasPrefix("/v1/events") { return .events(": open\n\n", isOpen: true) }
            if received.target.contains("wait=0") { return .page([], status: "timedOut", cursor: "c0") }
            try await Task.sleep(for: .seconds(3600))
            return .problem(500, "internal")
        } _: { gateway in
            var configuration = GatewayClientConfiguration()
            configuration.transport = kind == 1 ? .poll : .events
            let fake = try gateway.client(configuration)
            var environment = fake.environment
            environment.sleep = { _ in
                waiting.withLockedValue { $0 = true }
                try await Task.sleep(for: .seconds(3600))
            }
            let client = GatewayClient(
                nodes: fake.nodes, session: fake.session, configuration: configuration,
                exchange: HTTPExchange(http: HTTPExchange.sharedHTTP), environment: environment)
            let reader = Task { () async -> GatewayError? in
                do throws(GatewayError) { for try await _ in client.messages() {} } catch { return error }
                return nil
            }
            try await until("the reader waits") {
                gateway.received.count == (kind == 1 ? 2 : 1) && (kind < 2 || waiting.withLockedValue { $0 })
            }
            reader.cancel()
            #expect(await reader.value?.code == .cancelled)
        }
    }
}
