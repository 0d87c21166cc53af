import Foundation
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import GameServices
@testable import GameServicesTestSupport

extension GameServicesTests {
    @Suite("The end of a leaderboard's window")
    struct LeaderboardResetTests {
        @Test("no submit is lost or counted twice while windows end every 200 ms")
        func noneLost() async throws {
            let window = LeaderboardWindow.every(.milliseconds(200))
            try await withBoard {
                ($0.mode, $0.windows) = (.sum, [.allTime, window])
            } _: { board, redis, _ in
                // Nodes whose clocks are wrong, each by another amount.
                let boards = try [-70_000, -10_000, 0, 10_000, 70_000_000].map { error in
                    try Leaderboard(
                        "maze", redis: redis, namespace: "default", configuration: board.configuration,
                        serverClock: ServerClock { Int(Date().timeIntervalSince1970 * 1e6) + error })
                }
                let periods = try await withThrowingTaskGroup(of: [String].self) { group in
                    for board in boards {
                        group.addTask {
                            var periods: [String] = []
                            while Set(periods).count < 12 {
                                let placements = try await board.submit(1, for: "alice").placements
                                periods.append(placements[window]!.period)
                            }
                            return periods
                        }
                    }
                    return try await group.reduce(into: []) { $0 += $1 }
                }
                #expect(try await board.entry(of: "alice")?.score == periods.count)
                // Each period has as many as were placed in it.
                for (period, submits) in Dictionary(grouping: periods, by: { $0 }) {
                    let stored = try await redis.send(
                        "ZRANGE", .string(board.keys.key("ranks:\(period)")), 0, -1, "WITHSCORES")
                    #expect(stored.array?.last?.string == "-\(submits.count)")
                }
            }
        }

        @Test("a submit with a wrong estimate of the clock is stored in the window of Redis's clock")
        func wrongClock() async throws {
            try await withBoard {
                $0.windows = [.daily, .monthly]
            } _: { board, redis, _ in
                for error in [-40 * 86400, 40 * 86400] {
                    let wrong = try Leaderboard(
                        "maze", redis: redis, namespace: "default", configuration: board.configuration,
                        serverClock: ServerClock { Int(Date().timeIntervalSince1970 * 1e6) + error * 1_000_000 })
                    #expect(try await wrong.top(10, in: .monthly).period == board.top(10, in: .monthly).period)
                    try await wrong.submit(error, for: "\(error)")
                }
                #expect(try await board.top(10, in: .daily).entryCount == 2)
                #expect(try await board.top(10, in: .monthly).entryCount == 2)
            }
        }

        @Test("a repeated submit returns the first answer after its window has ended")
        func retryInNextWindow() async throws {
            let window = LeaderboardWindow.every(.milliseconds(200))
            try await withBoard {
                ($0.mode, $0.windows) = (.sum, [window, .allTime])
            } _: { board, _, _ in
                let first = try await board.submit(3, for: "alice", id: "run-1")
                // Until the window has ended.
                try await until("the next window begins") {
                    try await board.submit(1, for: "bob").placements[window]?.period
                        != first.placements[window]?.period
                }
                #expect(try await board.submit(3, for: "alice", id: "run-1") == first)
                #expect(try await board.entry(of: "alice")?.score == 3)
                #expect(try await board.entry(of: "alice", in: window) == nil)
                #expect(await errorOf { try await board.submit(4, for: "alice", id: "run-1") }?.code == .conflict)
                #expect(await errorOf { try await board.submit(3, for: "bob", id: "run-1") }?.code == .conflict)
            }
        }

        @Test("an ended window can be read until its retention is over, and expires by itself")
        func retention() async throws {
            let window = LeaderboardWindow.every(.milliseconds(200))
            try await withBoard {
                $0.windows = [window, .daily, .allTime]
            } _: { board, redis, _ in
                let first = try await board.submit(3, for: "alice").placements[window]!.period
                var ago = 0
                var page = try await board.top(10, in: window)
                while page.period == first { page = try await board.top(10, in: window) }
                while page.period != first {
                    ago += 1
                    page = try await board.top(10, in: window, ago: ago)
                    #expect(ago < 10_000)
                }
                #expect(page.text == "1 alice 3")
                let now = board.serverClock.now() / 1000
                for (period, kept) in [
                    (first, 62 * 86400), (LeaderboardWindow.daily.period(at: now * 1000).id, 63 * 86400),
                ] {
                    for kind in ["ranks", "stamps"] {
                        let ttl = try await redis.send("PTTL", .string(board.keys.key("\(kind):\(period)"))).integer!
                        #expect(ttl > 61 * 86_400_000 && ttl <= kept * 1000)
                    }
                }
                #expect(try await redis.send("PTTL", .string(board.keys.key("ranks:all-time"))).integer == -1)
            }
        }
    }
}
