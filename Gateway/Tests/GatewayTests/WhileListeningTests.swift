import NIOConcurrencyHelpers
import ServiceLifecycle
import Testing

@testable import Gateway

/// The application's function that runs beside the readers of a device.
@Suite("While a device listens", .timeLimit(.minutes(10)))
struct WhileListeningTests {
    /// Those for whom the function runs at present, and how often it has begun.
    private struct Listeners: Sendable {
        private let box = NIOLockedValueBox<(present: [Caller], begun: Int)>(([], 0))
        var present: [Caller] { box.withLockedValue { $0.present } }
        var begun: Int { box.withLockedValue { $0.begun } }

        func listen(_ caller: Caller) async {
            box.withLockedValue { $0 = ($0.present + [caller], $0.begun + 1) }
            // Ends when it is cancelled.
            try? await Task.sleep(for: .seconds(600))
            box.withLockedValue { _ = $0.present.remove(at: $0.present.firstIndex(of: caller)!) }
        }
    }

    private func withListeners(
        _ body: @escaping @Sendable ([TestNode], Listeners) async throws -> Void
    ) async throws {
        let listeners = Listeners()
        try await withNodes(2, whileListening: { await listeners.listen($0) }) { nodes, _ in
            try await body(nodes, listeners)
        }
        #expect(listeners.present.isEmpty, "the nodes have ended")
    }

    private let alicesPhone = Caller(user: "alice", device: "phone")

    @Test("the function runs while an event stream is open, and ends with it", arguments: ["client", "logout", "node"])
    func events(end: String) async throws {
        try await withListeners { nodes, listeners in
            let alice = try await TestClient(nodes[0].url, "alice")
            let stream = Task {
                for try await _ in try await TestEvents(alice) {}
            }
            try await until("the function runs") { listeners.present == [alicesPhone] }
            switch end {
            case "client": stream.cancel()
            case "logout": _ = try await alice.at(nodes[1].url).call("DELETE", "/v1/sessions")
            default: await nodes[0].services.triggerGracefulShutdown()
            }
            try await until("the function has ended") { listeners.present.isEmpty }
            stream.cancel()
            _ = await stream.result
            #expect(listeners.begun == 1)
        }
    }

    @Test("the function runs while a socket is open, and ends with it")
    func socket() async throws {
        try await withListeners { nodes, listeners in
            let alice = try await TestClient(nodes[0].url, "alice")
            let socket = try await TestSocket.open(alice)
            try await until("the function runs") { listeners.present == [alicesPhone] }
            try await socket.close()
            try await until("the function has ended") { listeners.present.isEmpty }
        }
    }

    @Test("the function runs during a poll that waits, and not for one that does not")
    func poll() async throws {
        try await withListeners { nodes, listeners in
            let alice = try await TestClient(nodes[0].url, "alice")
            #expect(try await alice.mail(wait: 0).status == 200)
            #expect(listeners.begun == 0)
            async let page = alice.mail(wait: 60)
            try await until("the function runs") { listeners.present == [alicesPhone] }
            _ = try await alice.at(nodes[1].url).send(["now"], to: ["alice"])
            #expect(try await page.body["messages"]?.array?.count == 1)
            #expect(listeners.present.isEmpty && listeners.begun == 1)
        }
    }
}
