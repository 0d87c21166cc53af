import Hiredis

/// Measures one message to each of many subscribers of one process, from the first PUBLISH to the last receipt.
enum FanOut {
    static func run(url: String, subscribers: Int, rounds: Int, prefix: String, placement: Placement) async throws
        -> Figures
    {
        try await withRedisClient(url: url) { redis in
            try await placement.run(redis) {
                try await redis.withSubscription(to: [.channel("\(prefix):done")]) { done in
                    _ = try await done.next()
                    let commands = (0..<subscribers).map { RedisCommand("PUBLISH", .string("\(prefix):\($0)"), "wake") }
                    var histogram = Figures.makeHistogram()
                    for round in -3..<rounds {
                        let start = monotonicNow()
                        _ = try await redis.pipeline(commands)
                        _ = try await done.next()
                        if round >= 0 { _ = histogram.record(UInt64(monotonicNow() - start)) }
                    }
                    return Figures(histogram, per: Double(subscribers))
                }
            }
        }
    }

    static func peer(url: String, subscribers: Int, rounds: Int, prefix: String, placement: Placement) async throws {
        try await withRedisClient(url: url) { redis in
            try await placement.run(redis) {
                var all: [Subscription] = []
                for number in 0..<subscribers {
                    all.append(try await redis.subscribe(to: [.channel("\(prefix):\(number)")]))
                }
                let done = SubscriptionTopic.channel("\(prefix):done")
                while try await redis.publish("ready", to: done) == 0 { await Task.yield() }
                let (received, count) = AsyncStream.makeStream(of: Void.self)
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for subscription in all {
                        group.addTask {
                            for _ in -3..<rounds {
                                _ = try await subscription.next()
                                count.yield()
                            }
                        }
                    }
                    var iterator = received.makeAsyncIterator()
                    for _ in -3..<rounds {
                        for _ in 0..<subscribers { await iterator.next() }
                        _ = try await redis.publish("", to: done)
                    }
                    try await group.waitForAll()
                }
            }
        }
    }
}
