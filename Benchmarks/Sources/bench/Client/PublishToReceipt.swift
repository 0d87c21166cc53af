import Hiredis

/// Measures the time from before PUBLISH in one process until a task of another process has the message, one message at a
/// time.
enum PublishToReceipt {
    /// Publishes the current time and waits for the answer, in each round.
    static func run(url: String, rounds: Int, prefix: String, placement: Placement) async throws {
        try await withRedisClient(url: url) { redis in
            let (there, back) = (
                SubscriptionTopic.channel("\(prefix):there"), SubscriptionTopic.channel("\(prefix):back")
            )
            try await placement.run(redis) {
                try await redis.withSubscription(to: [back]) { answers in
                    // The other process publishes once when it is subscribed.
                    _ = try await answers.next()
                    for _ in -Handoff.warmUp..<rounds {
                        _ = try await redis.publish(.string(String(monotonicNow())), to: there)
                        _ = try await answers.next()
                    }
                }
            }
        }
    }

    static func peer(url: String, rounds: Int, prefix: String, placement: Placement) async throws -> Figures {
        try await withRedisClient(url: url) { redis in
            let (there, back) = (
                SubscriptionTopic.channel("\(prefix):there"), SubscriptionTopic.channel("\(prefix):back")
            )
            return try await placement.run(redis) {
                try await redis.withSubscription(to: [there]) { messages in
                    while try await redis.publish("ready", to: back) == 0 { await Task.yield() }
                    var histogram = Figures.makeHistogram()
                    for round in -Handoff.warmUp..<rounds {
                        guard case .message(let message)? = try await messages.next() else { continue }
                        let now = monotonicNow()
                        if round >= 0, let sent = Int64(message.text) {
                            _ = histogram.record(UInt64(max(0, now - sent)))
                        }
                        _ = try await redis.publish("", to: back)
                    }
                    return Figures(histogram)
                }
            }
        }
    }
}
