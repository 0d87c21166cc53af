import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import HiredisTestSupport

extension ServerTests {
    @Suite("Publish and subscribe", .serialized, .timeLimit(.minutes(10)))
    struct SubscriptionTests {
        @Test("a sharded channel is different from the channel of the same name", .needs(command: "ssubscribe"))
        func sharded() async throws {
            try await withServer { _, redis in
                try await redis.withSubscription(to: [.shard("s"), "s"]) { events in
                    #expect(try await redis.publish("sharded", to: .shard("s")) == 1)
                    #expect(try await redis.publish("plain", to: "s") == 1)
                    let messages = [try await events.message(), try await events.message()]
                    #expect(messages.map(\.text) == ["sharded", "plain"])
                    #expect(messages.map(\.topic) == [.shard("s"), "s"])
                    await events.unsubscribe(from: [.shard("s")])
                    try await until("the shard's channel is left") {
                        try await redis.publish("nobody hears", to: .shard("s")) == 0
                    }
                    #expect(try await redis.publish("still here", to: "s") == 1)
                }
            }
        }
    }
}
