// Leaderboards, while a replica is promoted that lacks the last writes.
import Hiredis
import RedisDCTesting
import Synchronization
import TestSupport
import Testing

@testable import GameServices
@testable import GameServicesTestSupport

/// Runs `body` with handles of a leaderboard in two processes.
private func withBoards(
    configure: (inout LeaderboardConfiguration) -> Void = { _ in },
    _ body: (ReplicatedServers, _ one: Leaderboard, _ two: Leaderboard) async throws -> Void
) async throws {
    var configuration = LeaderboardConfiguration()
    (configuration.mode, configuration.callTimeout) = (.sum, patience)
    configure(&configuration)
    try await withReplicatedServers { servers in
        try await withTestClient(url: servers.url) { first in
            try await withTestClient(url: servers.url) { second in
                let boards = try [first, second].map {
                    try Leaderboard("maze", redis: $0, configuration: configuration)
                }
                try await body(servers, boards[0], boards[1])
            }
        }
    }
}

/// The number of scores that are stored, and whether that is enough.
private final class Stored: Sendable {
    private let state = Mutex((count: 0, isOver: false))
    var count: Int { state.withLock { $0.count } }
    var isOver: Bool { state.withLock { $0.isOver } }
    func add() { state.withLock { $0.count += 1 } }
    func end() { state.withLock { $0.isOver = true } }
}

extension GameServicesTests {
    @Suite("Leaderboards and a replica that lacks the last writes", .timeLimit(.minutes(5)))
    struct LeaderboardPromotionTests {
        @Test("a confirmed submit of a living process counts once after each promotion")
        func submits() async throws {
            try await withBoards { servers, one, two in
                let stored = Stored()
                try await withThrowingTaskGroup(of: [String: Int].self) { group in
                    for task in 0..<8 {
                        group.addTask {
                            let board = task % 2 == 0 ? one : two
                            var sums: [String: Int] = [:]
                            var number = 0
                            while !stored.isOver {
                                number += 1
                                let (name, score) = ("player \(number % 5)", number % 7)
                                try await board.submit(
                                    score, for: name, id: number % 3 == 0 ? nil : "\(task)-\(number)")
                                sums[name, default: 0] += score
                                stored.add()
                            }
                            return sums
                        }
                    }
                    for _ in 0..<3 {
                        let before = stored.count
                        try await until("scores are stored") { stored.count > before + 100 }
                        try await servers.cutReplication()
                        let then = stored.count
                        try await until("scores are stored that will be lost") {
                            stored.count > then + 300
                        }
                        await servers.promote()
                        try await servers.rejoin()
                    }
                    stored.end()
                    var expected: [String: Int] = [:]
                    for try await sums in group { expected.merge(sums) { $0 + $1 } }
                    let page = try await one.top(100)
                    #expect(Dictionary(uniqueKeysWithValues: page.entries.map { ($0.name, $0.score) }) == expected)
                }
            }
        }

        @Test("a repeated submit counts in the period in which it was confirmed")
        func period() async throws {
            let window = LeaderboardWindow.every(.milliseconds(500))
            try await withBoards {
                $0.windows = [.allTime, window]
            } _: { servers, one, two in
                try await servers.cutReplication()
                let period = try await one.submit(5, for: "alice").placements[window]!.period
                try await until("the period has ended") { try await two.top(1, in: window).period != period }
                await servers.promote()
                try await one.submit(1, for: "alice")
                #expect(try await two.entry(of: "alice")?.score == 6)
                var found: [Int] = []
                for ago in 0..<1000 {
                    let page = try await two.top(10, in: window, ago: ago)
                    if page.period == period { found = page.entries.map(\.score) }
                    if !found.isEmpty { break }
                }
                #expect(found == [5])
            }
        }

        @Test("a lost removal is repeated, and undone by no earlier submit; what came later stays")
        func removals() async throws {
            try await withBoards { servers, one, _ in
                for name in ["alice", "bob", "carol"] { try await one.submit(5, for: name) }
                try await servers.cutReplication()
                try await one.submit(3, for: "alice")
                for name in ["alice", "bob", "carol"] { #expect(try await one.remove(name) == 1) }
                try await one.submit(2, for: "alice")
                await servers.promote()
                #expect(try await one.top(10).text == "1 alice 2")
            }
        }

        @Test("the repetition of a removal leaves alone what was submitted after it")
        func laterSubmit() async throws {
            try await withBoards { servers, one, two in
                try await one.submit(5, for: "alice")
                let keys = one.keys.window(LeaderboardWindow.allTime.period(at: 0))
                let reply = try await one.redis.script(LeaderboardScripts.remove, keys: keys, arguments: ["alice"])
                let stamp = try #require(reply.array?.first?.string)
                try await two.submit(1, for: "alice")
                for _ in 0..<2 {
                    _ = try await one.redis.script(
                        LeaderboardScripts.removeAgain, keys: keys, arguments: ["alice", .string(stamp)])
                    #expect(try await one.entry(of: "alice")?.score == 1)
                }
            }
        }

        @Test("without a time to remember, a lost submit stays lost")
        func off() async throws {
            try await withBoards {
                $0.repairTime = .zero
            } _: { servers, one, _ in
                try await one.submit(5, for: "alice")
                try await servers.cutReplication()
                try await one.submit(3, for: "alice")
                await servers.promote()
                #expect(try await one.entry(of: "alice")?.score == 5)
            }
        }

        @Test("a confirmation that arrives after a new connection was compared is asked for again")
        func lateConfirmation() async throws {
            try await withBoards { _, one, _ in
                let memory = try #require(one.memory)
                let submit = ConfirmedSubmit(
                    id: "a", name: "a", score: 1, periods: [], answerLifetime: .seconds(60), isInOrder: true,
                    repeatableUntil: .seconds(60))
                let before = memory.begin()
                #expect(memory.confirm(.submit(submit), of: before))
                await memory.repair(on: .closed)
                #expect(!memory.confirm(.submit(submit), of: before))
                #expect(memory.confirm(.submit(submit), of: memory.begin()))
            }
        }
    }
}
