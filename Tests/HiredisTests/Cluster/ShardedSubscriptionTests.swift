import Hiredis
import RedisDCTesting
import TestSupport
import Testing

extension ServerTests {
    @Suite("Sharded subscriptions of a cluster", .serialized, .needs(command: "ssubscribe"))
    struct ShardedSubscriptionTests {
        /// Reads events until a message with this text has come, and returns the number of gaps before it.
        private func gaps(before text: String, _ events: Subscription) async throws -> Int {
            var gaps = 0
            while let event = try await events.next() {
                switch event {
                case .gap: gaps += 1
                case .message(let message): if message.text == text { return gaps }
                }
            }
            return gaps
        }

        /// Publishes a text until a subscriber receives it, also when the node that publishes it dies.
        private func publish(_ text: String, to channel: String, _ redis: RedisClient) async throws {
            try await until("there is a subscriber of \(channel)") {
                do { return try await redis.publish(.string(text), to: .shard(channel)) == 1 } catch let error
                    as RedisError
                    where error.code == .connectionLost
                { return false }
            }
        }

        @Test("one subscription receives sharded channels of all masters, and ordinary ones")
        func spread() async throws {
            try await withClusterClient { cluster, redis in
                let topics = spreadKeys.map { SubscriptionTopic.shard($0) } + [.channel("foo")]
                try await redis.withSubscription(to: topics) { events in
                    for key in spreadKeys {
                        let count = try await redis.publish(.string("to \(key)"), to: .shard(key))
                        #expect(count == 1)
                        let message = try await events.message()
                        #expect(message.text == "to \(key)" && message.topic == .shard(key))
                    }
                    _ = try await redis.publish("ordinary", to: "foo")
                    #expect(try await events.message().topic == .channel("foo"))
                    await events.unsubscribe(from: [.shard("foo")])
                    try await until("the server has no subscriber of the channel") {
                        try await redis.publish("x", to: .shard("foo")) == 0
                    }
                    #expect(try await redis.publish("still there", to: .shard("bar")) == 1)
                    #expect(try await events.message().text == "still there")
                }
                try await until("the servers have no subscriptions") {
                    for node in cluster.nodes
                    where try await directly(node, { try await $0.subscriptionConnections() }) > 0 {
                        let channels = try await directly(node) { try await $0.send("PUBSUB", "SHARDCHANNELS").array }
                        if channels?.isEmpty == false { return false }
                    }
                    return true
                }
            }
        }

        @Test("a sharded channel follows its slot, and its subscribers get a gap")
        func moves() async throws { try await moves(by: .classic) }

        @Test(
            "a sharded channel follows its slot when it moves atomically, and its subscribers get a gap",
            .needs(command: "cluster|migrateslots"))
        func atomicMoves() async throws { try await moves(by: .atomic) }

        private func moves(by way: SlotMove) async throws {
            try await withClusterClient { cluster, redis in
                try await redis.withSubscription(to: [.shard("foo"), .shard("{foo}2"), .shard("bar")]) { events in
                    for round in 0..<4 {
                        try await cluster.move(slots: [12182], to: cluster.nodes[round % 2], by: way)
                        for channel in ["foo", "{foo}2"] {
                            try await publish("\(round) \(channel)", to: channel, redis)
                        }
                        #expect(try await gaps(before: "\(round) {foo}2", events) > 0)
                        #expect(try await redis.publish("bar \(round)", to: .shard("bar")) == 1)
                        _ = try await gaps(before: "bar \(round)", events)
                    }
                }
            }
        }

        @Test("after a failover the subscribers of sharded channels get a gap, and then the messages")
        func failover() async throws {
            try await withClusterClient(.init()) { cluster, redis in
                try await redis.withSubscription(to: [.shard("foo"), .shard("bar"), "news"]) { events in
                    await (try cluster.master(ofKey: "foo")).kill()
                    try await publish("after the failover", to: "foo", redis)
                    #expect(try await gaps(before: "after the failover", events) > 0)
                    #expect(try await redis.publish("bar", to: .shard("bar")) == 1)
                    _ = try await gaps(before: "bar", events)
                    let replica = try await cluster.replicas(of: cluster.master(ofKey: "bar"))[0]
                    try await cluster.promote(replica)
                    try await publish("after the promotion", to: "bar", redis)
                    #expect(try await gaps(before: "after the promotion", events) > 0)
                    // A message is lost while the ordinary channel is subscribed again, and the reply to PUBLISH does not
                    // count the subscribers of other nodes.
                    let publishing = Task {
                        while !Task.isCancelled {
                            _ = try? await redis.publish("end", to: "news")
                            try? await Task.sleep(for: .milliseconds(100))
                        }
                    }
                    defer { publishing.cancel() }
                    _ = try await gaps(before: "end", events)
                }
            }
        }

        @Test("a channel can be subscribed while its slot moves")
        func joinDuringMove() async throws {
            try await withClusterClient { cluster, redis in
                for round in 0..<3 {
                    // The client's map has the old owner.
                    try await cluster.move(slots: [12182], to: cluster.nodes[round % 2])
                    try await redis.withSubscription(to: [.shard("foo")]) { events in
                        let count = try await redis.publish("x", to: .shard("foo"))
                        #expect(count == 1)
                        _ = try await gaps(before: "x", events)
                    }
                }
            }
        }
    }
}
