// Presence, while a replica is promoted that lacks the last writes.
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import GameServices
@testable import GameServicesTestSupport

/// Runs `body` with a bucket in two processes, and the same bucket as a process sees it that uses the replica.
private func withBuckets(
    configure: (inout PresenceConfiguration) -> Void = { _ in },
    _ body: (ReplicatedServers, _ one: PresenceBucket, _ two: PresenceBucket, _ replica: PresenceBucket) async throws ->
        Void
) async throws {
    var configuration = PresenceConfiguration()
    // A machine that stands still for some seconds ends no session.
    (configuration.ttl, configuration.callTimeout) = (.seconds(20), patience)
    configure(&configuration)
    try await withReplicatedServers { servers in
        try await withTestClient(url: servers.url) { first in
            try await withTestClient(url: servers.url) { second in
                try await withTestClient(url: servers.replica.url) { third in
                    try await withPresence(redis: first, configuration: configuration) { one in
                        try await withPresence(redis: second, configuration: configuration) { two in
                            try await withPresence(redis: third, configuration: configuration) { replica in
                                try await body(
                                    servers, one.bucket("room"), two.bucket("room"), replica.bucket("room"))
                            }
                        }
                    }
                }
            }
        }
    }
}

private func texts(_ bucket: PresenceBucket) async throws -> [String: String] {
    let objects = try await bucket.snapshot().objects.map { ($0.key, $0.text) }
    return Dictionary(uniqueKeysWithValues: objects)
}

extension GameServicesTests {
    @Suite("Presence and a replica that lacks the last writes", .timeLimit(.minutes(5)))
    struct PresencePromotionTests {
        @Test("what a living process has done is done again in its order, and its connections go on")
        func tail() async throws {
            try await withBuckets { servers, one, two, replica in
                let losses = try await one.losses()
                let alice = try await one.connect(user: "alice", client: "phone")
                let bob = try await one.connect(user: "bob", client: "phone")
                try await one.put("before", "1", owner: alice)
                try await one.put("removed", "1", owner: alice)
                try await one.put("of bob", "1", owner: bob)
                try await servers.cutReplication()
                let carol = try await one.connect(user: "carol", client: "phone")
                for number in 0..<200 { try await one.put("tail \(number % 50)", "\(number)", owner: carol) }
                let first = try await one.put("counted", "0", owner: carol)
                let second = try await one.update("counted", Array("1".utf8), version: first)
                let last = try await one.update("counted", Array("2".utf8), version: second)
                try await one.remove("removed", owner: alice)
                try await one.disconnect(bob)
                await servers.promote()
                // The first call on the new connection.
                try await one.put("after", "1", owner: carol)
                var expected = ["before": "1", "counted": "2", "after": "1"]
                for number in 150..<200 { expected["tail \(number % 50)"] = "\(number)" }
                try await until("bob's object has left") { try await texts(replica)["of bob"] == nil }
                #expect(try await texts(replica) == expected)
                // No version is given twice.
                let object = try await replica.object("counted")
                #expect(object?.version ?? 0 > last)
                #expect(await code { try await two.update("counted", [], version: last) } == .changed)
                try await one.disconnect(carol)
                try await until("carol's objects leave") { try await texts(replica) == ["before": "1"] }
                try await one.disconnect(alice)
                // Nobody was told of a loss.
                let told = Task { await losses.first { _ in true } }
                told.cancel()
                #expect(await told.value == nil)
            }
        }

        @Test("an update finds the version of its object again, also between changes that others repeat")
        func mixed() async throws {
            try await withBuckets { servers, one, two, replica in
                try await servers.cutReplication()
                let bob = try await two.connect(user: "bob", client: "phone")
                for number in 0..<300 { try await two.put("of bob \(number)", "1", owner: bob) }
                let alice = try await one.connect(user: "alice", client: "phone")
                let version = try await one.put("object", "1", owner: alice)
                // Their results have the version of the last change, which is that of the object now, and is not later.
                for number in 0..<200 { _ = try await one.connect(user: "alice", client: "\(number)") }
                try await one.update("object", Array("2".utf8), version: version)
                await servers.promote()
                try await one.put("after", "1", owner: alice)
                #expect(try await texts(replica)["object"] == "2")
                try await until("the other one has repeated all") { try await texts(replica).count == 302 }
            }
        }

        @Test("an update finds the version of its object again in a second repair, and in one that is interrupted")
        func again() async throws {
            try await withBuckets { servers, one, _, _ in
                let alice = try await one.connect(user: "alice", client: "phone")
                try await servers.cutReplication()
                var version = try await one.put("object", "1", owner: alice)
                for number in 2...20 {
                    version = try await one.update("object", Array("\(number)".utf8), version: version)
                }
                // The connection ends in the middle of the repetitions.
                await servers.proxy.dropNextReply(matching: "object10")
                await servers.promote()
                try await one.put("after", "1", owner: alice)
                #expect(servers.proxy.counters.droppedReplies == 1)
                #expect(try await texts(one) == ["object": "20", "after": "1"])
                // The session begins again from its first batch.
                try await withTestClient(url: servers.url) { _ = try await $0.send("FLUSHALL") }
                try await until("everything is repeated") {
                    try await texts(one) == ["object": "20", "after": "1"]
                }
            }
        }

        @Test("a session that the replica does not know at all begins again with everything")
        func session() async throws {
            try await withBuckets { servers, one, _, replica in
                try await servers.cutReplication()
                let alice = try await one.connect(user: "alice", client: "phone")
                try await one.put("object", "1", owner: alice)
                await servers.promote()
                try await one.put("object", "2", owner: alice)
                #expect(try await texts(replica) == ["object": "2"])
            }
        }

        @Test("an object that somebody else has on the new master is reported to its former owner")
        func taken() async throws {
            try await withBuckets { servers, one, _, replica in
                let losses = try await one.losses()
                let alice = try await one.connect(user: "alice", client: "phone")
                let bob = try await one.connect(user: "bob", client: "phone")
                try await servers.cutReplication()
                try await one.put("seat", "alice", owner: alice)
                try await one.put("other", "bob", owner: bob)
                let carol = try await replica.connect(user: "carol", client: "phone")
                try await replica.put("seat", "carol", owner: carol)
                await servers.promote()
                let loss = await losses.first { _ in true }
                #expect(loss?.cause == .dataLost && loss?.owners == [alice])
                // It is reported with the first of the lost batches, and the second one follows.
                try await until("the rest is repeated") {
                    try await texts(replica) == ["seat": "carol", "other": "bob"]
                }
                try await one.put("other", "bob again", owner: bob)
                #expect(try await texts(replica) == ["seat": "carol", "other": "bob again"])
            }
        }

        @Test("followers see what is done again, without a fault")
        func followers() async throws {
            try await withBuckets { servers, one, two, _ in
                let watcher = try await Watcher.start(two)
                let alice = try await one.connect(user: "alice", client: "phone")
                try await one.put("a", "1", owner: alice)
                try await servers.cutReplication()
                for number in 2...20 { try await one.put("a", "\(number)", owner: alice) }
                try await one.put("b", "1", owner: alice)
                try await watcher.until("everything is seen") { $0.objects["b"] != nil }
                await servers.promote()
                try await one.put("c", "1", owner: alice)
                try await watcher.until("the new change is seen") { $0.objects["c"] != nil }
                let state = watcher.state
                #expect(state.faults.isEmpty, "\(state.faults)")
                #expect(state.objects.mapValues(\.text) == ["a": "20", "b": "1", "c": "1"])
                await watcher.stop()
            }
        }

        @Test("without a memory, connections whose changes are lost are reported")
        func noMemory() async throws {
            try await withBuckets {
                $0.repairTime = .zero
            } _: { servers, one, _, replica in
                let losses = try await one.losses()
                let alice = try await one.connect(user: "alice", client: "phone")
                try await servers.cutReplication()
                try await one.put("object", "1", owner: alice)
                await servers.promote()
                let loss = await losses.first { _ in true }
                #expect(loss?.cause == .dataLost && loss?.owners == [alice])
                #expect(await code { try await one.put("object", "2", owner: alice) } == .lost)
                #expect(try await texts(replica).isEmpty)
            }
        }
    }
}
