import Hiredis
import QueueListen
import RedisDCTesting
import TestSupport
import Testing

@testable import GameServices
@testable import GameServicesTestSupport

extension GameServicesTests {
    @Suite("Game services and sentinels")
    struct GameSentinelTests {
        @Test("leaderboards, matchmakers and presence go on after the sentinels have promoted a replica")
        func failover() async throws {
            // A busy machine may stop the master for a second: a failover before the kill would lose what is written then.
            try await withLocalSentinel(.init(replicas: 1, downAfter: .seconds(60))) { sentinel in
                try await withRedisClient(url: sentinel.url) { redis in
                    try await withPostOffice(redis: redis) { office in
                        try await withPresence(redis: redis) { presence in
                            try await failover(sentinel, redis, office, presence)
                        }
                    }
                }
            }
        }

        private func failover(
            _ sentinel: LocalSentinel, _ redis: RedisClient, _ office: PostOffice, _ presence: Presence
        ) async throws {
            var configuration = LeaderboardConfiguration()
            configuration.mode = .sum
            let board = try Leaderboard("board", redis: redis, configuration: configuration)
            var answers: [LeaderboardSubmission] = []
            for number in 0..<50 {
                answers.append(try await board.submit(number, for: "player \(number % 10)", id: "run \(number)"))
            }
            let matchmaker = try Matchmaker("duel", redis: redis, office: office)
            try await matchmaker.enqueue("alice", rating: 0)
            let bucket = try presence.bucket("room")
            let phone = try await bucket.connect(user: "alice", client: "phone")
            try await bucket.put("a", "1", owner: phone)
            let watcher = try await Watcher.start(bucket)
            let best = try await board.top(10)

            let old = try await sentinel.master()
            try await replicated(from: old, to: try await sentinel.replicas()[0])
            for server in sentinel.sentinels {
                try await withRedisClient(url: server.url) {
                    _ = try await $0.send(
                        "SENTINEL", "SET", .string(sentinel.name), "down-after-milliseconds", "1000")
                }
            }
            await old.kill()
            _ = try await sentinel.waitForMaster(otherThan: old)

            for number in 0..<50 {
                let again = try await board.submit(number, for: "player \(number % 10)", id: "run \(number)")
                #expect(again == answers[number])
            }
            #expect(try await board.top(10).entries == best.entries)
            guard case .matched(let match) = try await matchmaker.enqueue("bob", rating: 0).state else {
                Issue.record("the waiting player is not matched")
                return
            }
            #expect(match.players.map(\.name).sorted() == ["alice", "bob"])
            try await bucket.put("a", "2", owner: phone)
            try await watcher.until("the change arrives") { $0.objects["a"]?.text == "2" }
            #expect(try await bucket.disconnect(phone))
            try await watcher.until("the object leaves") { $0.objects.isEmpty }
            #expect(watcher.state.leaves.count == 1 && watcher.state.faults == [])
        }

        /// Waits until a replica has what its master has now.
        private func replicated(from master: LocalRedis, to replica: LocalRedis) async throws {
            func state(_ server: LocalRedis) async throws -> (history: String?, offset: Int) {
                let info = try await withRedisClient(url: server.url) {
                    try await $0.send("INFO", "replication").string
                }
                func value(_ name: String) -> String? {
                    let line = info?.split(whereSeparator: \.isNewline).first { $0.hasPrefix(name + ":") }
                    return line.map { String($0.dropFirst(name.count + 1)) }
                }
                return (value("master_replid"), value("master_repl_offset").flatMap { Int($0) } ?? -1)
            }
            let written = try await state(master)
            try await until("the replica has everything") {
                let copied = try await state(replica)
                return copied.history == written.history && copied.offset >= written.offset
            }
        }
    }
}
