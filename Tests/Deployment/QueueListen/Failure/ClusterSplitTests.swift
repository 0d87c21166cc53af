// A network that separates one master of a cluster, with one process, from the other nodes and another process.
import Hiredis
import QueueListen
import RedisDCTesting
import TestSupport
import Testing

extension QueueListenTests {
    @Suite("A master of a cluster that is separated from the other nodes", .serialized, .timeLimit(.minutes(5)))
    struct ClusterSplitTests {
        @Test(
            "messages that only the separated master has confirmed are sent again, and no reader is notified of a loss")
        func split() async throws {
            // Long enough that the separated master still accepts the messages.
            try await withLocalCluster(.init(nodeTimeout: .seconds(8), isSplittable: true)) { cluster in
                let old = try await cluster.master(ofKey: "ql:{default:0}:")
                let replica = try await cluster.replicas(of: old)[0]
                try await withRedisClient(cluster.clientConfiguration(onSideOf: old)) { first in
                    try await withRedisClient(url: cluster.url) { second in
                        try await withPostOffice(redis: first) { isolated in
                            try await withPostOffice(redis: second) { other in
                                try await split(cluster, old, replica, isolated, other)
                            }
                        }
                    }
                }
            }
        }

        private func split(
            _ cluster: LocalCluster, _ old: LocalRedis, _ replica: LocalRedis, _ isolated: PostOffice,
            _ other: PostOffice
        ) async throws {
            _ = try await other.send("before", to: "read", "unread", durability: .replicated(1))
            let onSide = try isolated.mailbox("read")
            let readBefore = try await onSide.listen(device: "side")
            #expect(readBefore.messages.map(\.text) == ["before"])
            let beyond = try other.mailbox("read")
            let elsewhere = try await beyond.listen(device: "beyond")
            let unread = try other.mailbox("unread")
            let unreadBefore = try await unread.listen()
            try await cluster.separate(old)

            // The separated master confirms them, and no replica has them. One is read, the other is not.
            _ = try await isolated.send("lost", to: "read", "unread")
            let readLost = try await onSide.listen(after: readBefore.cursor, device: "side", timeout: .seconds(120))
            #expect(readLost.messages.map(\.text) == ["lost"])
            let error = await #expect(throws: QueueListenError.self) {
                _ = try await isolated.send("reported", to: "reported", durability: .replicated(1))
            }
            // The second when the master has begun to refuse.
            #expect(error?.code == .notDurable || error?.code == .notConnected)

            try await cluster.waitUntilPromoted(replica)
            try await send("kept", to: "read", other)
            // A reader that had not seen the lost message has lost nothing.
            let kept = try await beyond.listen(after: elsewhere.cursor, device: "beyond", timeout: .seconds(120))
            #expect(kept.messages.map(\.text) == ["kept"])

            try await cluster.reunite(old)
            try await cluster.waitUntilHealthy()
            // The reader that had seen it goes on, and the readers of the mailbox whose message no one has seen receive it
            // from its sender.
            var words: [String] = []
            var delivery = readLost
            while words.last != "kept" {
                delivery = try await onSide.listen(after: delivery.cursor, device: "side", timeout: .seconds(120))
                if delivery.messages.isEmpty, delivery.skipped == 0 {
                    Issue.record("the reader is notified: \(delivery.status)")
                    return
                }
                words += delivery.messages.map(\.text)
            }
            #expect(words == ["kept"])
            try await send("again", to: "unread", isolated)
            var rest: [String] = []
            delivery = unreadBefore
            while rest.last != "again" {
                delivery = try await unread.listen(after: delivery.cursor, timeout: .seconds(120))
                if delivery.messages.isEmpty {
                    Issue.record("the reader is notified: \(delivery.status)")
                    return
                }
                rest += delivery.messages.map(\.text)
            }
            #expect(rest == ["lost", "again"])
        }

        /// Sends when the office has found the new master.
        private func send(_ text: String, to recipient: String, _ office: PostOffice) async throws {
            try await until("\(text) is sent") {
                do throws(QueueListenError) {
                    _ = try await office.send(text, to: recipient, id: text)
                    return true
                } catch {
                    guard [.notConnected, .connectionLost].contains(error.code) else { throw error }
                    return false
                }
            }
        }
    }
}
