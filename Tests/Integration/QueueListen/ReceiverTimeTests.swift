// Acknowledgements and retries by a manual clock.
import CoordinationBase
import Hiredis
import TestSupport
import Testing

@testable import QueueListen
@testable import QueueListenTestSupport

/// Runs a private server and a post office whose time passes only when the test says so.
private func withManualTime(_ body: (PostOffice, ManualClock) async throws -> Void) async throws {
    try await withServer { _, redis, _ in
        let clock = ManualClock()
        let office = try PostOffice(redis: redis, namespace: "default", configuration: .init(), clock: clock.clock)
        try await whileRunning({ await office.run() }, { try await body(office, clock) })
    }
}

private struct Refusal: Error {}

extension QueueListenTests {
    @Suite("Time of a reader", .serialized)
    struct ReceiverTimeTests {
        @Test("a slow loop acknowledges finished messages after a second, a fast one at the end of its page")
        func slowLoop() async throws {
            try await withManualTime { office, clock in
                let mailbox = try office.mailbox("alice")
                func acknowledged() async throws -> Int? { try await mailbox.devices().first?.acknowledged.index }
                try await office.send((1...4).map { Message(text: "\($0)") }, to: ["alice"])
                var iterator = mailbox.messages().makeAsyncIterator()
                _ = try await iterator.next()
                _ = try await iterator.next()
                clock.advance(by: .milliseconds(999))
                _ = try await iterator.next()
                #expect(try await acknowledged() == 0)
                clock.advance(by: .milliseconds(1))
                guard case .message(let message)? = try await iterator.next() else {
                    Issue.record("the page has ended")
                    return
                }
                // The loop has finished with the third message, and not with the fourth.
                #expect(message.index == 4)
                #expect(try await acknowledged() == 3)
            }
        }

        @Test("the pauses between the attempts of a receiver double up to their maximum")
        func pauses() async throws {
            try await withManualTime { office, clock in
                let attempts = Locked(0)
                let policy = FailurePolicy.retry(pause: .milliseconds(100)...(.milliseconds(700)))
                var receiver = Receiver(try office.mailbox("alice"), onFailure: policy) { _ in }
                receiver.handleOthers { _ in
                    if attempts.withLock({ attempts in
                        attempts += 1
                        return attempts < 7
                    }) {
                        throw Refusal()
                    }
                }
                try await office.send("a", to: "alice")
                let running = Task { [receiver] in try await receiver.run() }
                for (number, milliseconds) in [100, 200, 400, 700, 700, 700].enumerated() {
                    let pause = Duration.milliseconds(milliseconds)
                    try await until("pause \(number + 1)") { clock.sleeps.contains(pause) }
                    #expect(attempts.withLock { $0 } == number + 1)
                    clock.advance(by: pause)
                }
                try await until("the message is acknowledged") { try await office.mailbox("alice").count == 0 }
                #expect(attempts.withLock { $0 } == 7)
                running.cancel()
                #expect(await errorOf { try await running.value }?.code == .cancelled)
            }
        }
    }
}
