// Many subscriptions that start and end while connections are killed.
import Hiredis
import RedisDCTesting
import TestRandom
import TestSupport
import Testing

@testable import HiredisTestSupport

extension ServerTests.SubscriptionFailureTests {
    @Test(
        "200 tasks subscribe, receive and leave under repeated kills without hanging or leaving topics subscribed"
    )
    func churn() async throws {
        let seed = testSeed(default: 99)
        try await withServer {
            $0.reconnectDelay = Self.soon
            $0.commandTimeout = .seconds(60)
        } _: { _, redis in
            let killed = Record<Int>()
            let killing = Task {
                var generator = SplitMix(seed: seed)
                while !Task.isCancelled {
                    killed.add(try await redis.killSubscriptions())
                    try await Task.sleep(for: .milliseconds(Int.random(in: 0...8, using: &generator)))
                }
            }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 1...200 {
                    group.addTask {
                        var generator = SplitMix(seed: seed &* 1000 &+ UInt64(number))
                        for _ in 0..<20 { try await receiveOne(redis, &generator) }
                    }
                }
                try await group.waitForAll()
            }
            killing.cancel()
            _ = await killing.result
            #expect(killed.all.reduce(0, +) > 5)
            try await until("nothing is subscribed") {
                let patterns = try await redis.integer("PUBSUB", "NUMPAT")
                return try await redis.activeChannels().isEmpty && patterns == 0
            }
        }
    }

    /// Subscribes to random topics, publishes until a message arrives, and leaves in a random way.
    private func receiveOne(_ redis: RedisClient, _ generator: inout SplitMix) async throws {
        let channel = "c:\(Int.random(in: 0..<20, using: &generator))"
        let topics: [SubscriptionTopic] =
            generator.isHit(1, of: 4) ? [.pattern("\(channel)*")] : [.channel(channel), "all"]
        let events = try await redis.subscribe(to: topics)
        var hasMessage = false
        while !hasMessage {
            // A gap announces messages lost with the connection; the message is then sent again.
            _ = try await redis.publish("x", to: .channel(channel))
            guard case .message? = try await events.next() else { continue }
            hasMessage = true
        }
        switch Int.random(in: 0..<3, using: &generator) {
        case 0: events.cancel()
        case 1: await events.unsubscribe(from: topics)
        default: break
        }
    }
}
