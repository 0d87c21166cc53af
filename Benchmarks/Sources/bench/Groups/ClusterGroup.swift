import Foundation
import Hiredis
import RedisDC
import RedisDCTesting

extension Plan {
    /// Measures a namespace that is spread over a cluster of three masters, against the same on one server, and how long
    /// a subscription is interrupted when its slot moves.
    func cluster(_ server: LocalRedis, _ table: inout Table) async throws {
        // Without replicas, as the one server is.
        try await withLocalCluster(.init(replicasPerMaster: 0)) { cluster in
            for placement in Placement.allCases {
                for place in [
                    (title: "one server, 1 partition", url: server.url, partitions: 1),
                    (title: "one server, 64 partitions", url: server.url, partitions: 64),
                    (title: "cluster of 3 masters, 64 partitions", url: cluster.url, partitions: 64),
                ] {
                    let isCluster = place.url == cluster.url
                    let words = ["\(place.partitions)"]
                    let pairs = try rate(
                        worker("spread-pairs", place.url, sizes.manyPairs, randomPrefix(), placement, words))
                    table.add(
                        "64 tasks with one mutex each, TCP, pairs/s, \(placement.title)", place.title, pairs,
                        goal: isCluster ? "at least 0.8" : nil)
                    let sends = try rate(
                        worker("spread-sends", place.url, sizes.sends, randomPrefix(), placement, words))
                    table.add(
                        "64 tasks with one mailbox each, TCP, sends/s, \(placement.title)", place.title, sends)
                    for tokens in [64, 1] {
                        let prefix = randomPrefix()
                        let count = sizes.handoffs * (tokens == 1 ? 1 : 4)
                        let more = words + ["\(tokens)"]
                        let peer = try worker("spread-tokens-peer", place.url, count, prefix, placement, more)
                        let handoffs = try rate(worker("spread-tokens", place.url, count, prefix, placement, more))
                        _ = try peer.rest()
                        table.add(
                            "\(tokens == 1 ? "One token" : "\(tokens) tokens") between two processes, TCP, hand-offs/s, "
                                + placement.title, place.title, handoffs)
                    }
                }
            }
            for _ in 0..<sizes.moves { try await movedSubscription(cluster, &table) }
        }
    }

    /// Returns a channel in whose slot there are no keys of earlier measurements, and the master of the slot: a slot with
    /// keys cannot be assigned to another master.
    private func channelInEmptySlot(_ cluster: LocalCluster) async throws -> (String, LocalRedis) {
        while true {
            let channel = randomPrefix()
            let source = try await cluster.master(ofKey: channel)
            let keys = try await withRedisClient(url: source.url) { redis in
                let slot = try await redis.send("CLUSTER", "KEYSLOT", .string(channel)).integer ?? 0
                return try await redis.send("CLUSTER", "COUNTKEYSINSLOT", .integer(slot)).integer ?? 0
            }
            if keys == 0 { return (channel, source) }
        }
    }

    /// Measures a sharded channel whose slot moves to another master.
    private func movedSubscription(_ cluster: LocalCluster, _ table: inout Table) async throws {
        let group = "A sharded channel whose slot moves, ms"
        let (channel, source) = try await channelInEmptySlot(cluster)
        let target = cluster.nodes.first { $0 !== source } ?? source
        let (moved, subscribed) = try await withRedisClient(url: cluster.url) { redis in
            try await withRedisClient(url: source.url) { old in
                try await withRedisClient(url: target.url) { new in
                    try await redis.withSubscription(to: [.shard(channel)]) { _ in
                        let slot = RedisArgument.integer(
                            try await old.send("CLUSTER", "KEYSLOT", .string(channel)).integer ?? 0)
                        let owner = RedisArgument.string(try await new.send("CLUSTER", "MYID").string ?? "")
                        // In the order in which a slot is moved: otherwise the old master would lead to one that
                        // does not serve the slot yet.
                        // Without the greatest epoch, a node that knows a greater one of the old master would undo the
                        // move. The target takes one more than it knows, so it must know that of the move before.
                        try await cluster.waitUntilHealthy()
                        _ = try await new.send("CLUSTER", "BUMPEPOCH")
                        let start = monotonicNow()
                        _ = try await new.send("CLUSTER", "SETSLOT", slot, "NODE", owner)
                        _ = try await old.send("CLUSTER", "SETSLOT", slot, "NODE", owner)
                        let moved = monotonicNow()
                        while try await new.send("PUBSUB", "SHARDNUMSUB", .string(channel)).array?.last?.integer != 1 {
                            guard monotonicNow() - start < 30_000_000_000 else {
                                throw BenchError("the channel is not subscribed at its new master after 30 s")
                            }
                            try await Task.sleep(for: .milliseconds(1))
                        }
                        return (moved - start, monotonicNow() - start)
                    }
                }
            }
        }
        table.add(group, "the two commands that move the slot", Double(moved) / 1e6)
        table.add(group, "until the channel is subscribed at its new master", Double(subscribed) / 1e6)
    }
}
