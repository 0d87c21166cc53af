import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import GameServices
@testable import GameServicesTestSupport

extension GameServicesTests {
    @Suite("Repeated submits of a leaderboard")
    struct LeaderboardRetryTests {
        @Test("a submit of a killed process is repeated by another process and counts once")
        func killed() async throws {
            try await withBoard {
                $0.mode = .sum
            } _: { board, redis, server in
                for round in 0..<6 {
                    // The worker submits run 1, run 2, … and announces each of them before it submits it.
                    let child = try Child("services-worker", ["board-submit", server.url, "log\(round)"])
                    try await until("the worker has begun some submits") {
                        try await redis.send("LLEN", "log\(round)").integer! > 5 + round
                    }
                    try await child.kill9()
                    let begun = try await redis.send("LLEN", "log\(round)").integer!
                    for number in 1...begun {
                        try await board.submit(1, for: "log\(round)", id: "log\(round)-\(number)")
                    }
                    #expect(try await board.entry(of: "log\(round)")?.score == begun)
                }
            }
        }
    }
}
