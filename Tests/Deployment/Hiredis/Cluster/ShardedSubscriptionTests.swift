import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import HiredisTestSupport

extension ServerTests {
    @Suite("Sharded subscriptions of a cluster", .serialized, .needs(command: "ssubscribe"), .timeLimit(.minutes(10)))
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

        /// Publishes a text to a topic that moves until its subscription delivers it, and returns the number of gaps
        /// before it.
        ///
        /// The reply to `SPUBLISH` is no reason to wait for the message: when the channel moves, it may count the
        /// subscription at the old server, which the client gives up before it has read the message.
        private func gaps(
            beforeRepeated text: String, on topic: SubscriptionTopic, _ redis: RedisClient, _ events: Subscription
        ) async throws -> Int {
            let publishing = Task {
                while !Task.isCancelled {
                    _ = try? await redis.publish(.string(text), to: topic)
                    try? await Task.sleep(for: .milliseconds(50))
                }
            }
            defer { publishing.cancel() }
            return try await gaps(before: text, events)
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
                        let first = try await gaps(beforeRepeated: "\(round) foo", on: .shard("foo"), redis, events)
                        #expect(first > 0)
                        _ = try await gaps(beforeRepeated: "\(round) foo2", on: .shard("{foo}2"), redis, events)
                        #expect(try await redis.publish("bar \(round)", to: .shard("bar")) == 1)
                        _ = try await gaps(before: "bar \(round)", events)
                    }
                }
            }
        }

        @Test("a sharded channel and its key follow a slot that a master with a lower epoch gets")
        func movesToLowerEpoch() async throws {
            try await withClusterClient { cluster, redis in
                try await redis.withSubscription(to: [.shard("foo")]) { events in
                    let (high, low) = (cluster.nodes[0], cluster.nodes[1])
                    // A master that imports a slot takes a new epoch.
                    try await cluster.move(slots: [12182], to: low)
                    try await cluster.move(slots: [12182], to: high)
                    _ = try await gaps(beforeRepeated: "at the high epoch", on: .shard("foo"), redis, events)
                    let id = try await directly(low) { try await $0.send("CLUSTER", "MYID").string ?? "" }
                    // A message of the old master that was under way can take the slot back.
                    try await until("all nodes have the new master of the slot") {
                        for node in [low, high] + cluster.nodes {
                            _ = try await directly(node) {
                                try await $0.send("CLUSTER", "SETSLOT", 12182, "NODE", .string(id))
                            }
                        }
                        return try await directly(low) { try await $0.send("SPUBLISH", "foo", "x").integer != nil }
                    }
                    // Not by this client: a redirect would show it the new master.
                    try await until("the channel is subscribed at its new master") {
                        try await directly(low) { try await $0.send("SPUBLISH", "foo", "at the low epoch").integer }
                            == 1
                    }
                    #expect(try await gaps(before: "at the low epoch", events) > 0)
                    #expect(try await redis.send("SET", "foo", "bar").string == "OK")
                }
            }
        }

        @Test("after a failover the subscribers of sharded channels get a gap, and then the messages")
        func failover() async throws {
            try await withClusterClient(.init()) { cluster, redis in
                try await redis.withSubscription(to: [.shard("foo"), .shard("bar"), "news"]) { events in
                    await (try cluster.master(ofKey: "foo")).kill()
                    let lost = try await gaps(beforeRepeated: "after the failover", on: .shard("foo"), redis, events)
                    #expect(lost > 0)
                    #expect(try await redis.publish("bar", to: .shard("bar")) == 1)
                    _ = try await gaps(before: "bar", events)
                    let replica = try await cluster.replicas(of: cluster.master(ofKey: "bar"))[0]
                    try await cluster.promote(replica)
                    let moved = try await gaps(beforeRepeated: "after the promotion", on: .shard("bar"), redis, events)
                    #expect(moved > 0)
                    // A message is lost while the ordinary channel is subscribed again.
                    _ = try await gaps(beforeRepeated: "end", on: "news", redis, events)
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
