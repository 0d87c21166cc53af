#if ServiceLifecycleSupport
    import Hiredis
    import ServiceLifecycle
    import ServiceLifecycleTestKit
    import TestSupport
    import Testing

    @testable import QueueListen
    @testable import QueueListenTestSupport

    /// A handler that waits until the test lets it return.
    private final class SlowHandler: Sendable {
        private let state = Locked((texts: [String](), isOpen: false))

        var texts: [String] { state.withLock { $0.texts } }
        func open() { state.withLock { $0.isOpen = true } }

        func handle(_ message: ReceivedMessage) async throws {
            state.withLock { $0.texts.append(message.text) }
            try await until("the handler may return") { state.withLock { $0.isOpen } }
        }
    }

    private struct Refusal: Error {}

    extension QueueListenTests {
        @Suite("Graceful shutdown of a receiver", .serialized)
        struct ReceiverShutdownTests {
            /// Starts a receiver of "alice" that can be shut down.
            private func start(
                _ office: PostOffice, onFailure policy: FailurePolicy = .retry(), _ handler: @escaping Receiver.Handler
            ) async throws -> (running: Task<Void, any Error>, trigger: GracefulShutdownTestTrigger) {
                var receiver = Receiver(try office.mailbox("alice"), onFailure: policy) { _ in }
                receiver.handleOthers(handler)
                // The task inherits the shutdown's trigger.
                return await testGracefulShutdown { trigger in
                    (Task { [receiver] in try await receiver.run() }, trigger)
                }
            }

            @Test("a shutdown during a handler waits for it, and loses and repeats no message", arguments: [0, 1, 2])
            func duringHandler(_ position: Int) async throws {
                try await withOffice { office, _, _ in
                    let mailbox = try office.mailbox("alice")
                    let sent = ["a", "b", "c"]
                    try await office.send(sent.map { Message(text: $0) }, to: ["alice"])
                    let slow = SlowHandler()
                    let handled = Locked<[String]>([])
                    let (running, trigger) = try await start(office) { message in
                        if message.text == sent[position] { try await slow.handle(message) }
                        handled.withLock { $0.append(message.text) }
                    }
                    try await until("the handler runs") { slow.texts == [sent[position]] }
                    trigger.triggerGracefulShutdown()
                    slow.open()
                    try await running.value
                    #expect(handled.withLock { $0 } == Array(sent[...position]))
                    #expect(try await mailbox.count == 2 - position)
                    let (second, _) = try await start(office) { message in
                        handled.withLock { $0.append(message.text) }
                    }
                    try await office.send("d", to: "alice")
                    try await until("the rest is handled") { handled.withLock { $0.last } == "d" }
                    #expect(handled.withLock { $0 } == ["a", "b", "c", "d"])
                    second.cancel()
                }
            }

            @Test("a shutdown ends the wait for messages, and the last message is acknowledged")
            func duringWait() async throws {
                try await withOffice { office, _, _ in
                    let handled = Locked(0)
                    let (running, trigger) = try await start(office) { _ in handled.withLock { $0 += 1 } }
                    try await office.send("a", to: "alice")
                    try await until("the message is handled") { handled.withLock { $0 } == 1 }
                    try await office.untilWaiting(1, at: "alice")
                    trigger.triggerGracefulShutdown()
                    try await running.value
                    #expect(try await office.mailbox("alice").count == 0)
                    #expect(await (try office.mailbox("alice")).listeners.isEmpty)
                }
            }

            @Test("a shutdown ends the attempts of a failing handler, whose message is delivered again")
            func duringPause() async throws {
                try await withOffice { office, _, _ in
                    let attempts = Locked(0)
                    let policy = FailurePolicy.retry(pause: .seconds(3600)...(.seconds(3600)))
                    let (running, trigger) = try await start(office, onFailure: policy) { message in
                        guard message.text == "bad" else { return }
                        attempts.withLock { $0 += 1 }
                        throw Refusal()
                    }
                    try await office.send([Message(text: "good"), Message(text: "bad")], to: ["alice"])
                    try await until("the handler has failed") { attempts.withLock { $0 } == 1 }
                    trigger.triggerGracefulShutdown()
                    try await running.value
                    #expect(attempts.withLock { $0 } == 1)
                    #expect(try await office.mailbox("alice").look().word == "bad")
                }
            }

            @Test("a receiver that starts during a shutdown handles nothing")
            func beforeRun() async throws {
                try await withOffice { office, _, _ in
                    try await office.send("a", to: "alice")
                    let handled = Locked(0)
                    var receiver = Receiver(try office.mailbox("alice")) { _ in }
                    receiver.handleOthers { _ in handled.withLock { $0 += 1 } }
                    try await testGracefulShutdown { [receiver] trigger in
                        trigger.triggerGracefulShutdown()
                        try await receiver.run()
                    }
                    #expect(handled.withLock { $0 } == 0)
                    #expect(try await office.mailbox("alice").count == 1)
                }
            }
        }
    }
#endif
