import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import GameServices
@testable import GameServicesTestSupport

extension GameServicesTests {
    @Suite("The size of a leaderboard")
    struct LeaderboardSizeTests {
        @Test("with 1,000,000 entries, each operation runs the same commands as with 1,000")
        func size() async throws {
            try await withBoard { board, redis, _ in
                try await fill(board, redis, 0..<1000)
                try await board.submit(500, for: "ann")
                try await board.submit(500, for: "bob")
                // The first call of an operation loads its script.
                _ = try await costs(board, redis)
                let few = try await costs(board, redis)

                try await fill(board, redis, 1000..<1_000_000)
                #expect(try await costs(board, redis) == few)
                // Each round of operations has added two names, which are the first six.
                let around = try await board.around("ann", 3)
                #expect(around.text == "999506 p500 500, 999507 ann 500, 999508 bob 500")
                #expect(around.entryCount == 1_000_008)
                #expect(try await board.submit(500_000, for: "ann").placements[.allTime]?.rank == 500_007)
                #expect(
                    try await board.around("ann", 3).text
                        == "500006 p500000 500000, 500007 ann 500000, 500008 p499999 499999")
            }
        }

        /// Writes entries as submits would have done, in a few scripts. Entry `number` has this score.
        private func fill(_ board: Leaderboard, _ redis: RedisClient, _ numbers: Range<Int>) async throws {
            let window = board.keys.window(LeaderboardWindow.allTime.period(at: 0))
            for start in stride(from: numbers.lowerBound, to: numbers.upperBound, by: 10_000) {
                _ = try await redis.script(
                    Self.fillScript, keys: window,
                    arguments: [.integer(start), .integer(min(start + 10_000, numbers.upperBound) - 1)])
            }
        }

        /// KEYS[1] ranks, [2] stamps: see Lua/board.lua. ARGV[1] the first number, [2] the last one.
        private static let fillScript = RedisScript(
            """
            for number = ARGV[1], ARGV[2] do
              local name, stamp = string.format('p%d', number), string.format('%014x', number + 1)
              redis.call('ZADD', KEYS[1], -number, stamp .. name)
              redis.call('HSET', KEYS[2], name, stamp)
            end
            """)

        private struct Cost: Hashable {
            var operation: String
            var commands: [String: Int]
            var scripts: Int
        }

        /// Returns what each operation costs the server. Each call adds two names, whose scores are the best ones.
        private func costs(_ board: Leaderboard, _ redis: RedisClient) async throws -> [Cost] {
            let name = "new \(try await board.top(1).entryCount)"
            let operations: [(String, () async throws -> Void)] = [
                ("a submit of a new name", { try await board.submit(2_000_000, for: name) }),
                ("a submit that improves", { try await board.submit(3_000_000, for: name) }),
                ("a submit that does not improve", { try await board.submit(1, for: "ann") }),
                ("a submit with an id", { try await board.submit(2_000_000, for: name + "'s friend", id: name) }),
                ("the same submit again", { try await board.submit(2_000_000, for: name + "'s friend", id: name) }),
                ("the rank of a name", { _ = try await board.entry(of: "bob") }),
                ("the entries around a name", { _ = try await board.around("ann", 21) }),
                ("the best entries", { _ = try await board.top(10) }),
                ("entries in the middle", { _ = try await board.top(10, skipping: 500) }),
                ("entries of friends", { _ = try await board.entries(of: ["ann", "bob", "p7", "nobody"]) }),
            ]
            var costs: [Cost] = []
            for (operation, body) in operations {
                let cost = try await cost(redis, body)
                costs.append(Cost(operation: operation, commands: cost.commands, scripts: cost.scripts))
            }
            return costs
        }
    }
}
