// Subscribers that read more slowly than messages arrive.
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import HiredisTestSupport

extension ServerTests.SubscriptionFailureTests {
    private func withSlowSubscriber(
        _ buffer: SubscriptionBuffer, _ body: (_ slow: Subscription, RedisClient) async throws -> Void
    ) async throws {
        try await withServer { _, redis in
            // The slow subscriber is first: when the fast one has a message, the slow one's buffer has it as well.
            let slow = try await redis.subscribe(to: ["n"], buffer: buffer)
            let fast = try await redis.subscribe(to: ["n"], buffer: .init(messages: 10_000))
            let numbers = (0..<10_000).map { "\($0)" }
            let reading = Task { try await fast.texts(numbers.count) }
            for start in stride(from: 0, to: numbers.count, by: 500) {
                try await redis.publish(start..<start + 500, to: "n")
            }
            #expect(try await reading.value == numbers)
            try await body(slow, redis)
        }
    }

    @Test(
        "a subscriber that does not read delays no other; with .dropOldest it gets a gap and the newest messages"
    )
    func dropOldest() async throws {
        try await withSlowSubscriber(.init(messages: 100)) { slow, redis in
            #expect(try await slow.next() == .gap(.overflow(missed: 9_900)))
            #expect(try await slow.texts(100) == (9_900..<10_000).map { "\($0)" })
            _ = try await redis.publish("next", to: "n")
            #expect(try await slow.texts(1) == ["next"])
        }
    }

    @Test("with .suspend a slow subscriber gets the oldest messages, a gap, and later messages")
    func suspend() async throws {
        try await withSlowSubscriber(.init(messages: 100, policy: .suspend)) { slow, redis in
            #expect(try await slow.texts(99) == (0..<99).map { "\($0)" })
            // There is room again, but the buffer is not empty yet.
            let mark = try await redis.subscribe(to: ["n"])
            _ = try await redis.publish("passed over", to: "n")
            _ = try await mark.message()
            #expect(try await slow.texts(1) == ["99"])
            #expect(try await slow.next() == .gap(.overflow(missed: 9_901)))
            _ = try await redis.publish("next", to: "n")
            #expect(try await slow.texts(1) == ["next"])
        }
    }

    @Test("with .fail a slow subscriber gets the buffered messages, then .subscriberTooSlow")
    func fail() async throws {
        try await withSlowSubscriber(.init(messages: 100, policy: .fail)) { slow, _ in
            let gathered = try await slow.texts(100)
            #expect(gathered == (0..<100).map { "\($0)" })
            for _ in 0..<2 {
                #expect(await redisError { _ = try await slow.next() }?.code == .subscriberTooSlow)
            }
        }
    }

    @Test("the buffered bytes are limited, but one message is always accepted")
    func byteBound() async throws {
        try await withServer { _, redis in
            let slow = try await redis.subscribe(to: ["n"], buffer: .init(messages: 1000, bytes: 1000))
            let fast = try await redis.subscribe(to: ["n"])
            func publish(_ sizes: [Int]) async throws {
                for size in sizes {
                    _ = try await redis.publish(.bytes([UInt8](repeating: 65, count: size)), to: "n")
                    _ = try await fast.message()
                }
            }
            try await publish([Int](repeating: 100, count: 50))
            #expect(try await slow.next() == .gap(.overflow(missed: 40)))
            for _ in 0..<10 { #expect(try await slow.message().payload.count == 100) }

            try await publish([100, 200, 5000])
            #expect(try await slow.next() == .gap(.overflow(missed: 2)))
            #expect(try await slow.message().payload.count == 5000)

            try await publish([5000, 10, 20, 30])
            #expect(try await slow.next() == .gap(.overflow(missed: 1)))
            for size in [10, 20, 30] { #expect(try await slow.message().payload.count == size) }
        }
    }
}
