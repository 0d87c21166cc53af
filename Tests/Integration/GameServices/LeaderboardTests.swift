import Foundation
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import GameServices
@testable import GameServicesTestSupport

extension GameServicesTests {
    @Suite("Leaderboards")
    struct LeaderboardTests {
        @Test("the reply of a submit has the rank, and the better score stays")
        func best() async throws {
            try await withBoard { board, _, _ in
                #expect(try await board.submit(10, for: "alice").placements[.allTime]?.rank == 1)
                #expect(try await board.submit(20, for: "bob").placements[.allTime]?.rank == 1)
                let worse = try await board.submit(5, for: "bob").placements[.allTime]
                #expect(worse?.rank == 1 && worse?.score == 20 && worse?.isChanged == false && worse?.entryCount == 2)
                let better = try await board.submit(30, for: "alice").placements[.allTime]
                #expect(better?.rank == 1 && better?.score == 30 && better?.isChanged == true)
                #expect(try await board.top(10).text == "1 alice 30, 2 bob 20")
                #expect(try await board.entry(of: "bob")?.rank == 2)
                #expect(try await board.entry(of: "carol") == nil)
            }
        }

        @Test("with the lower score as the better one, the lowest is first and stays")
        func lowest() async throws {
            try await withBoard {
                $0.order = .lowerIsBetter
            } _: { board, _, _ in
                for (name, score) in [("alice", 31), ("bob", -7), ("carol", 31), ("alice", 40), ("carol", 30)] {
                    try await board.submit(score, for: name)
                }
                #expect(try await board.top(10).text == "1 bob -7, 2 carol 30, 3 alice 31")
            }
        }

        @Test("the latest score replaces a better one")
        func latest() async throws {
            try await withBoard {
                $0.mode = .latest
            } _: { board, _, _ in
                for (name, score) in [("alice", 31), ("bob", 20), ("alice", 10)] {
                    try await board.submit(score, for: name)
                }
                #expect(try await board.top(10).text == "1 bob 20, 2 alice 10")
            }
        }

        @Test(
            "among equal scores the entry that reached it first is first, also after an equal submit",
            arguments: LeaderboardConfiguration.Mode.allCases, LeaderboardConfiguration.Order.allCases)
        func ties(mode: LeaderboardConfiguration.Mode, order: LeaderboardConfiguration.Order) async throws {
            try await withBoard {
                ($0.mode, $0.order) = (mode, order)
            } _: { board, _, _ in
                // Neither in the order of the names nor in its reverse.
                let names = ["m", "z", "a", "q", "b"]
                for name in names { try await board.submit(7, for: name) }
                // Adding nothing, or the same score again, does not change the time.
                try await board.submit(mode == .sum ? 0 : 7, for: "z")
                #expect(try await board.top(10).entries.map(\.name) == names)
                let dates = try await board.top(10).entries.map(\.date)
                #expect(dates == dates.sorted() && Set(dates).count == 5)
            }
        }

        @Test("equal scores stay in the order of their arrival when the clock of Redis steps back")
        func clockSteps() async throws {
            try await withBoard { board, redis, _ in
                try await board.submit(7, for: "z")
                // As if the clock had been an hour ahead.
                let ahead = Int(Date().timeIntervalSince1970 * 1e6) + 3_600_000_000
                _ = try await redis.send("HSET", .string(board.keys.key("meta")), "stamp", .integer(ahead))
                try await board.submit(7, for: "m")
                try await board.submit(7, for: "a")
                #expect(try await board.top(10).entries.map(\.name) == ["z", "m", "a"])
            }
        }

        @Test("the page around a name is full at both ends")
        func around() async throws {
            try await withBoard { board, _, _ in
                for number in 1...10 { try await board.submit(100 - number, for: "p\(number)") }
                func ranks(_ name: String, _ count: Int) async throws -> [Int] {
                    let page = try await board.around(name, count)
                    #expect(page.entryCount == 10)
                    #expect(page.entries.allSatisfy { $0.name == "p\($0.rank)" && $0.score == 100 - $0.rank })
                    return page.entries.map(\.rank)
                }
                #expect(try await ranks("p1", 5) == [1, 2, 3, 4, 5])
                #expect(try await ranks("p2", 5) == [1, 2, 3, 4, 5])
                #expect(try await ranks("p5", 5) == [3, 4, 5, 6, 7])
                #expect(try await ranks("p5", 4) == [4, 5, 6, 7])
                #expect(try await ranks("p9", 5) == [6, 7, 8, 9, 10])
                #expect(try await ranks("p10", 5) == [6, 7, 8, 9, 10])
                #expect(try await ranks("p10", 1) == [10])
                #expect(try await ranks("p3", 1000) == Array(1...10))
                #expect(try await ranks("nobody", 5) == [])
            }
        }

        @Test("pages of the top continue each other, and end with the ranking")
        func pages() async throws {
            try await withBoard { board, _, _ in
                for number in 1...10 { try await board.submit(100 - number, for: "p\(number)") }
                #expect(try await board.top(4, skipping: 4).entries.map(\.rank) == [5, 6, 7, 8])
                #expect(try await board.top(4, skipping: 8).entries.map(\.rank) == [9, 10])
                #expect(try await board.top(4, skipping: 10).entries.isEmpty)
            }
        }

        @Test("friends are ranked among all, in order, and unknown and repeated names do not count")
        func friends() async throws {
            try await withBoard { board, _, _ in
                for number in 1...1500 { try await board.submit(number, for: "p\(number)") }
                let page = try await board.entries(of: ["p3", "nobody", "p1400", "p3"])
                #expect(page.text == "101 p1400 1400, 1498 p3 3")
                #expect(page.entryCount == 1500)
                let names = (501...1500).map { "p\($0)" }
                #expect(try await board.entries(of: names).entries.map(\.rank) == Array(1...1000))
                #expect(try await board.entries(of: []).entryCount == 1500)
                #expect(await errorOf { _ = try await board.entries(of: names + ["p1"]) }?.code == .invalidArgument)
            }
        }

        @Test("the entries of 1,000 names are read in steps of 200 names")
        func friendsInSteps() async throws {
            try await withBoard { board, redis, _ in
                for number in 1...3 { try await board.submit(number, for: "p\(number)") }
                let names = (1...1000).map { "p\($0)" }
                _ = try await board.entries(of: names)
                let counted = try await cost(redis) {
                    let page = try await board.entries(of: names)
                    #expect(page.text == "1 p3 3, 2 p2 2, 3 p1 1")
                }
                #expect(counted.scripts == 5 && counted.commands["hmget"] == 5)
            }
        }

        @Test("scores and names that are not allowed are refused before anything is sent")
        func validation() async throws {
            let redis = try RedisClient(url: "redis://127.0.0.1:1")
            // The client does not run, so a request would fail in another way.
            let board = try Leaderboard("maze", redis: redis)
            for score in [1 << 53 + 1, -(1 << 53) - 1, .max, .min] {
                #expect(await errorOf { try await board.submit(score, for: "alice") }?.code == .invalidArgument)
            }
            for score in [0.5, .nan, .infinity, 9_007_199_254_740_994, 1e300] {
                #expect(await errorOf { try await board.submit(score, for: "alice") }?.code == .invalidArgument)
            }
            for name in ["", "a\nb", "{a}", String(repeating: "a", count: 513)] {
                #expect(await errorOf { try await board.submit(1, for: name) }?.code == .invalidArgument)
                #expect(await errorOf { _ = try await board.around(name, 5) }?.code == .invalidArgument)
                #expect(throws: GameServiceError.self) { try Leaderboard(name, redis: redis) }
            }
            #expect(await errorOf { _ = try await board.top(0) }?.code == .invalidArgument)
            #expect(await errorOf { _ = try await board.top(1001) }?.code == .invalidArgument)
            #expect(await errorOf { _ = try await board.top(1, in: .daily) }?.code == .invalidArgument)
        }

        @Test(
            "sums are exact up to 2^53, and a sum beyond it changes nothing",
            arguments: LeaderboardConfiguration.Order.allCases, [1, -1])
        func sums(order: LeaderboardConfiguration.Order, sign: Int) async throws {
            try await withBoard {
                ($0.mode, $0.order, $0.windows) = (.sum, order, [.allTime, .monthly])
            } _: { board, redis, _ in
                let limit = sign * Leaderboard.maxScore
                try await board.submit(limit - sign, for: "alice")
                #expect(try await board.submit(sign, for: "alice").placements[.monthly]?.score == limit)
                let before = try await redis.send("HGETALL", .string(board.keys.key("meta")))
                // 2^53 + 1 is not a number of its own in double precision.
                #expect(await errorOf { try await board.submit(sign, for: "alice", id: "x") }?.code == .outOfRange)
                #expect(await errorOf { try await board.submit(limit, for: "alice") }?.code == .outOfRange)
                #expect(try await board.entry(of: "alice")?.score == limit)
                #expect(try await redis.send("HGETALL", .string(board.keys.key("meta"))) == before)
                // A refused submit leaves no answer: with room it takes effect.
                try await board.submit(-3 * sign, for: "alice")
                #expect(
                    try await board.submit(sign, for: "alice", id: "x").placements[.allTime]?.score == limit - 2 * sign)
            }
        }

        @Test("a sum that is too large in one window changes no other window")
        func sumOfOneWindow() async throws {
            try await withBoard {
                ($0.mode, $0.windows) = (.sum, [.allTime, .monthly])
            } _: { board, redis, _ in
                try await board.submit(Leaderboard.maxScore, for: "alice")
                // Only all time is at its limit.
                for key in board.keys.window(LeaderboardWindow.monthly.period(at: board.serverClock.now())) {
                    _ = try await redis.send("DEL", .string(key))
                }
                #expect(await errorOf { try await board.submit(1, for: "alice") }?.code == .outOfRange)
                #expect(try await board.top(10, in: .monthly).entryCount == 0)
            }
        }

        @Test("another mode or order is refused")
        func rules() async throws {
            try await withBoard { board, redis, _ in
                try await board.submit(1, for: "alice")
                var other = LeaderboardConfiguration()
                other.order = .lowerIsBetter
                let lower = try Leaderboard("maze", redis: redis, configuration: other)
                #expect(await errorOf { try await lower.submit(1, for: "bob") }?.code == .conflict)
                (other.order, other.mode) = (.higherIsBetter, .sum)
                let sum = try Leaderboard("maze", redis: redis, configuration: other)
                #expect(await errorOf { try await sum.submit(1, for: "bob") }?.code == .conflict)
                #expect(try await board.top(10).entryCount == 1)
                try await board.delete()
                try await sum.submit(1, for: "bob")
                #expect(try await board.top(10).text == "1 bob 1")
            }
        }

        @Test("a removed entry is gone from all windows, and its ranks close")
        func remove() async throws {
            try await withBoard {
                $0.windows = [.allTime, .daily, .weekly]
            } _: { board, _, _ in
                for (name, score) in [("alice", 3), ("bob", 2), ("carol", 1)] {
                    try await board.submit(score, for: name, id: "submit of \(name)")
                }
                #expect(try await board.remove("bob") == 3)
                #expect(try await board.remove("bob") == 0)
                for window in board.configuration.windows {
                    #expect(try await board.top(10, in: window).text == "1 alice 3, 2 carol 1")
                }
                try await board.submit(2, for: "bob", id: "submit of bob")
                #expect(try await board.entry(of: "bob") == nil)
            }
        }

        @Test("leaderboards and namespaces are separate, and names may contain anything printable")
        func separate() async throws {
            try await withBoard { board, redis, _ in
                let other = try Leaderboard("maze", redis: redis, namespace: "other")
                let third = try Leaderboard("mäze: 2", redis: redis)
                try await board.submit(1, for: "a b:c\"é")
                try await other.submit(2, for: "bob")
                try await third.submit(3, for: "carol")
                #expect(try await board.top(10).text == "1 a b:c\"é 1")
                #expect(try await other.top(10).text == "1 bob 2")
                #expect(try await third.top(10).text == "1 carol 3")
            }
        }
    }
}
