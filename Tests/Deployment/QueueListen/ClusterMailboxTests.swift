// Mailboxes whose partitions are on several servers.
import Hiredis
import QueueListen
import RedisDCTesting
import TestSupport
import Testing

extension QueueListenTests {
    @Suite("Mailboxes on a cluster", .serialized)
    struct ClusterMailboxTests {
        @Test(
            "sends reach all partitions and listeners receive each message once, while slots move and a master fails",
            arguments: [1, 3, 64])
        func mailboxes(partitions: Int) async throws { try await mailboxes(movesBy: .classic, partitions) }

        @Test(
            "sends reach all partitions and listeners receive each message once, while slots move atomically",
            .needs(command: "cluster|migrateslots"))
        func atomicMoves() async throws { try await mailboxes(movesBy: .atomic, 3) }

        private func mailboxes(movesBy way: SlotMove, _ partitions: Int) async throws {
            try await withLocalCluster { cluster in
                try await withRedisClient(url: cluster.url) { redis in
                    var configuration = PostOfficeConfiguration()
                    configuration.partitions = partitions
                    try await withPostOffice(redis: redis, configuration: configuration) { office in
                        // Enough that most partitions have a mailbox.
                        let names = ["alice", "bob", "carol", "dave"] + (0..<partitions).map { "player-\($0)" }
                        var cursors: [String: Cursor] = [:]
                        for round in 0..<4 {
                            switch round {
                            case 1:
                                for partition in 0..<partitions {
                                    let key = RedisArgument("ql:{default:\(partition)}:")
                                    let slot = try await redis.masters()[0].send(["CLUSTER", "KEYSLOT", key]).integer
                                    let target = cluster.nodes[(partition + round) % 3]
                                    try await cluster.move(slots: [try #require(slot)], to: target, by: way)
                                }
                            case 2:
                                await cluster.nodes[1].kill()
                                try await cluster.waitUntilHealthy()
                            default: break
                            }
                            // One listener waits already, the others find the message.
                            let cursor = cursors["alice"]
                            let waiting = Task {
                                try await office.mailbox("alice").listen(after: cursor, timeout: .seconds(120))
                            }
                            try await until("the send succeeds") {
                                do {
                                    _ = try await office.send(
                                        [Message(text: "round \(round)")], to: names, id: "round-\(round)",
                                        durability: round < 2 ? .replicated(1) : .memory)
                                    return true
                                } catch let error as QueueListenError where error.code != .cancelled {
                                    return false
                                }
                            }
                            for name in names {
                                let delivery =
                                    name == "alice"
                                    ? try await waiting.value
                                    : try await office.mailbox(name).listen(
                                        after: cursors[name], timeout: .seconds(120))
                                #expect(delivery.messages.map(\.text) == ["round \(round)"])
                                cursors[name] = delivery.cursor
                            }
                        }
                    }
                }
            }
        }
    }
}
