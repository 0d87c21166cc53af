import NIOConcurrencyHelpers
import RedisDCTesting
import Testing

@testable import GatewayClient

/// The client with gateways that are processes of their own, which die.
@Suite("The client with processes", .serialized, .timeLimit(.minutes(10)))
struct ClientProcessTests {
    /// Starts a node at a port.
    private func node(_ server: LocalRedis, port: Int) throws -> GatewayProcess {
        try GatewayProcess([
            "--redis-url", server.url, "--port", "\(port)", "--operations-port", "0", "--insecure-anonymous", "true",
            "--allow-sends", "all", "--log-level", "error",
        ])
    }

    @Test(
        "a reader whose node is killed resumes at the other one: nothing lost, nothing twice, order kept",
        arguments: [GatewayClientConfiguration.Transport.events, .poll])
    func killed(transport: GatewayClientConfiguration.Transport) async throws {
        try await withLocalRedis { server in
            var processes = [
                try node(server, port: try await freePort()), try node(server, port: try await freePort()),
            ]
            var urls: [String] = []
            for process in processes { urls.append(try await process.url()) }
            let alice = try await ClientNodeTests.client(urls, "alice") { $0.transport = transport }
            let bob = try await ClientNodeTests.client(urls, "bob")
            let (total, kills) = (240, 4)
            // Each send is repeated under its id by the client, when its node dies.
            let sender = Task {
                for number in 1...total { try await bob.send(OutgoingMessage(text: "\(number)"), to: ["alice"]) }
            }
            defer { sender.cancel() }
            var seen: [Int] = []
            var killed = 0
            reading: for try await event in alice.messages() {
                guard case .message(let message) = event else {
                    Issue.record("\(event)")
                    break
                }
                seen.append(Int(message.text) ?? 0)
                if seen.count % 50 == 0 { try await alice.acknowledge(message.cursor) }
                if killed < kills, seen.count == (killed + 1) * total / (kills + 1) {
                    // In the middle of the stream: the sender goes on.
                    let index = try #require(urls.firstIndex(of: alice.nodes.current))
                    processes[index].kill9()
                    try await until("the node has ended") { !processes[index].isRunning }
                    let port = try #require(Int(urls[index].split(separator: ":").last ?? ""))
                    processes[index] = try node(server, port: port)
                    _ = try await processes[index].url()
                    killed += 1
                }
                if seen.count == total { break reading }
            }
            try await sender.value
            #expect(seen == Array(1...total))
            #expect(killed == kills)
        }
    }

    @Test("while Redis is away a reader stays, and calls succeed when it is back")
    func redisAway() async throws {
        try await withLocalRedis(.init(persistence: .appendOnly(fsync: .always))) { server in
            let processes = [
                try node(server, port: try await freePort()), try node(server, port: try await freePort()),
            ]
            var urls: [String] = []
            for process in processes { urls.append(try await process.url()) }
            let alice = try await ClientNodeTests.client(urls, "alice")
            try await alice.send(OutgoingMessage(text: "1"), to: ["alice"])
            var iterator = alice.messages().makeAsyncIterator()
            let first = try #require(try await iterator.next()?.cursor)
            await server.kill()
            let acknowledging = Task { try await alice.acknowledge(first, timeout: .seconds(100)) }
            try await server.restart()
            try await acknowledging.value
            try await alice.send(OutgoingMessage(text: "2"), to: ["alice"], timeout: .seconds(100))
            guard case .message(let message) = try await iterator.next() else {
                Issue.record("no message")
                return
            }
            #expect(message.text == "2")
        }
    }
}
