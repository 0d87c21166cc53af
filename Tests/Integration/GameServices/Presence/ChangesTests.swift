import Foundation
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import GameServices
@testable import GameServicesTestSupport

/// A Redis on which publications can be withheld from subscribers, and replies of scripts lost.
private struct Faulty: RedisDecorator {
    struct Faults: Sendable {
        /// Scripts that run and whose replies are then lost.
        var lostReplies: [String] = []
        var isUnsubscribed = false
    }
    let redis: RedisClient
    let faults = Locked(Faults())

    func script(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration?
    ) async throws(RedisError) -> RESPValue {
        let reply = try await redis.script(script, keys: keys, arguments: arguments, timeout: timeout)
        let isLost = faults.withLock { faults in
            guard let place = faults.lostReplies.firstIndex(where: { script.source.contains($0) }) else { return false }
            faults.lostReplies.remove(at: place)
            return true
        }
        if isLost { throw RedisError(.connectionLost, "the reply is lost", mayHaveRun: true) }
        return reply
    }

    func subscribe(
        to topics: [SubscriptionTopic], buffer: SubscriptionBuffer
    ) async throws(RedisError) -> Subscription {
        let elsewhere = topics.map { SubscriptionTopic($0.kind, $0.name + ":elsewhere") }
        return try await redis.subscribe(to: faults.withLock(\.isUnsubscribed) ? elsewhere : topics, buffer: buffer)
    }
}

extension PresenceTests {
    @Suite("Changes")
    struct ChangesTests {
        @Test("without publications, a subscriber receives all changes from the log, and no gap")
        func withoutPublications() async throws {
            try await withNodes { redis, one, _, server in
                let faulty = Faulty(redis: redis)
                faulty.faults.withLock { $0.isUnsubscribed = true }
                var configuration = PresenceConfiguration()
                configuration.heartbeatInterval = .milliseconds(100)
                try await withPresence(redis: faulty, configuration: configuration) { presence in
                    let watcher = try await Watcher.start(try presence.bucket("room"))
                    let bucket = try one.bucket("room")
                    let alice = try await bucket.connect(user: "alice", client: "phone")
                    // More than one reply of the log.
                    for number in 0..<700 { try await bucket.put("k\(number % 7)", "\(number)", owner: alice) }
                    try await bucket.remove("k0", owner: alice)
                    try await watcher.until("all arrive") { $0.version == 701 }
                    let state = watcher.state
                    #expect(state.puts.count == 700 && state.leaves.map(\.key) == ["k0"])
                    #expect(state.gaps == 0 && state.snapshots == 1 && state.faults == [])
                }
            }
        }

        @Test("a subscriber that misses more than the log holds receives a gap, then a correct snapshot")
        func missesTooMuch() async throws {
            try await withNodes(configure: { $0.maxLoggedChanges = 20 }) { redis, one, _, _ in
                let faulty = Faulty(redis: redis)
                faulty.faults.withLock { $0.isUnsubscribed = true }
                try await withPresence(redis: faulty) { presence in
                    let bucket = try one.bucket("room")
                    let alice = try await bucket.connect(user: "alice", client: "phone")
                    try await bucket.put("before", "", owner: alice)
                    let watcher = try await Watcher.start(try presence.bucket("room"))
                    for number in 0..<100 { try await bucket.put("k\(number % 3)", "\(number)", owner: alice) }
                    try await bucket.remove("before", owner: alice)
                    // The heartbeat shows that changes are missing.
                    try await watcher.until("the snapshot arrives") { $0.version == 102 }
                    let state = watcher.state
                    // One gap, unless the puts took longer than a heartbeat.
                    #expect(state.gaps >= 1 && state.snapshots == state.gaps + 1 && state.faults == [])
                    #expect(state.objects.mapValues(\.text) == ["k0": "99", "k1": "97", "k2": "98"])
                }
            }
        }

        @Test("when Redis loses changes that nobody repeats, subscribers receive a gap, and owners are notified")
        func rollback() async throws {
            try await withNodes {
                $0.repairTime = .zero
            } _: { redis, one, other, _ in
                let bucket = try one.bucket("room")
                let watcher = try await Watcher.start(try other.bucket("room"))
                let losses = try await bucket.losses()
                let alice = try await bucket.connect(user: "alice", client: "phone")
                try await bucket.put("kept", "1", owner: alice)
                try await copyBucket("room", redis, to: "saved")
                try await bucket.put("lost", "1", owner: alice)
                try await watcher.until("both arrive") { $0.objects.count == 2 }
                try await copyBucket("saved", redis, to: "room")
                let loss = try #require(await losses.first { _ in true })
                #expect(loss.cause == .dataLost && loss.owners == [alice])
                #expect(await code { try await bucket.put("lost", "2", owner: alice) } == .lost)
                let again = try await bucket.connect(user: "alice", client: "phone")
                // As many changes as before: the version alone would not tell.
                try await bucket.put("other", "1", owner: again)
                try await watcher.until("the snapshot arrives") { $0.gaps == 1 && $0.objects["lost"] == nil }
                try await bucket.put("lost", "3", owner: again)
                try await watcher.until("it is there again") { $0.objects["lost"]?.text == "3" }
                #expect(watcher.state.objects.keys.sorted() == ["kept", "lost", "other"])
                #expect(watcher.state.leaves == [] && watcher.state.faults == [])
            }
        }

        @Test("a batch whose reply is lost takes effect once")
        func lostReply() async throws {
            try await withNodes { redis, one, _, _ in
                let faulty = Faulty(redis: redis)
                try await withPresence(redis: faulty) { presence in
                    let bucket = try presence.bucket("room")
                    let watcher = try await Watcher.start(try one.bucket("room"))
                    let join = "Begins a session"
                    let apply = "Carries out a batch"
                    faulty.faults.withLock { $0.lostReplies = [join, apply, apply] }
                    let alice = try await bucket.connect(user: "alice", client: "phone")
                    faulty.faults.withLock { $0.lostReplies = [apply, apply] }
                    let version = try await bucket.put("a", "1", owner: alice)
                    faulty.faults.withLock { $0.lostReplies = [apply] }
                    #expect(try await bucket.update("a", [50], version: version) == version + 1)
                    faulty.faults.withLock { $0.lostReplies = [apply] }
                    #expect(try await bucket.remove("a", owner: alice))
                    try await watcher.until("it leaves") { $0.leaves.count == 1 }
                    #expect(watcher.state.version == 3 && watcher.state.faults == [])
                }
            }
        }

        @Test("a bucket that was deleted begins again, and everyone is notified")
        func deleted() async throws {
            try await withNodes {
                $0.repairTime = .zero
            } _: { redis, one, other, _ in
                let bucket = try one.bucket("room")
                let watcher = try await Watcher.start(try other.bucket("room"))
                let losses = try await bucket.losses()
                let alice = try await bucket.connect(user: "alice", client: "phone")
                try await bucket.put("a", "1", owner: alice)
                try await watcher.until("it arrives") { $0.objects.count == 1 }
                _ = try await redis.send("FLUSHALL")
                #expect(await losses.first { _ in true }?.cause == .dataLost)
                let again = try await bucket.connect(user: "alice", client: "phone")
                try await bucket.put("b", "1", owner: again)
                try await watcher.until("it is there") { $0.objects.keys.sorted() == ["b"] }
                #expect(watcher.state.gaps == 1 && watcher.state.leaves == [] && watcher.state.faults == [])
            }
        }

        /// Copies all keys of a bucket over those of another one, as a failover that loses the latest
        /// writes does.
        private func copyBucket(_ name: String, _ redis: RedisClient, to other: String) async throws {
            func key(_ name: String, _ part: String) -> RedisArgument { "gs:{default:\(name)}:presence:\(part)" }
            let replies = try await redis.transaction(
                ["state", "index", "due", "log"].map {
                    ["COPY", key(name, $0), key(other, $0), "REPLACE"]
                })
            #expect(replies.map(\.integer) == [1, 1, 1, 1])
        }
    }
}
