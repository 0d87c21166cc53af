import Hiredis
import QueueListen
import RedisDCTesting
import TestSupport
import Testing

@testable import GameServices
@testable import GameServicesTestSupport

extension GameServicesTests {
    @Suite("Game services on a cluster")
    struct ClusterGameTests {
        @Test("leaderboards and matchmakers are spread over the servers, and work while their slots move")
        func moves() async throws {
            try await withLocalCluster(.init(nodeTimeout: .seconds(20))) { cluster in
                try await withRedisClient(url: cluster.url) { redis in
                    var mail = PostOfficeConfiguration()
                    mail.partitions = 8
                    try await withPostOffice(redis: redis, configuration: mail) { office in
                        var configuration = LeaderboardConfiguration()
                        configuration.mode = .sum
                        configuration.windows = [.allTime, .daily, .weekly, .monthly]
                        let names = (0..<8).map { "service \($0)" }
                        for round in 0..<3 {
                            for (number, name) in names.enumerated() {
                                let board = try Leaderboard(name, redis: redis, configuration: configuration)
                                for player in ["alice", "bob"] { try await board.submit(1, for: player) }
                                #expect(
                                    try await board.top(9, in: .daily).text
                                        == "1 alice \(round + 1), 2 bob \(round + 1)")
                                #expect(try await board.remove("carol") == 0)
                                let node = try Matchmaker(name, redis: redis, office: office)
                                let players = ["a \(number) \(round)", "b \(number) \(round)"]
                                _ = try await node.enqueue(players[0], rating: 0)
                                guard case .matched(let match) = try await node.enqueue(players[1], rating: 0).state
                                else {
                                    Issue.record("not matched")
                                    return
                                }
                                // The players' mailboxes are in partitions of their own.
                                for player in players {
                                    let messages = try await office.mailbox(player).peek()
                                    #expect(try messages.map { try $0.decode(as: Match.self) } == [match])
                                }
                                guard number == round else { continue }
                                for key in [board.keys.key("meta"), node.keys[0]] {
                                    let slot = try await redis.masters()[0].send(["CLUSTER", "KEYSLOT", .string(key)])
                                    try await cluster.move(
                                        slots: [try #require(slot.integer)], to: cluster.nodes[(number + 1) % 3])
                                }
                            }
                        }
                        for name in names {
                            try await Leaderboard(name, redis: redis, configuration: configuration).delete()
                        }
                    }
                }
            }
        }
    }
}
