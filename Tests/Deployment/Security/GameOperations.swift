// Every public operation of leaderboards and matchmakers, by one user of the server.
import GameServices
import Hiredis
import QueueListen
import TestSupport
import Testing

/// Runs every public operation of a leaderboard and a matchmaker in one namespace.
struct GameOperations {
    let redis: RedisClient
    let namespace: String
    /// Another user, who sends the outcomes of matches.
    let admin: RedisClient

    func run() async throws {
        try await board()
        // As the other operations, if they use the same namespace.
        let configuration = MailOperations.configuration()
        try await withPostOffice(redis: admin, namespace: namespace, configuration: configuration) {
            try await match($0)
        }
    }

    private func board() async throws {
        var configuration = LeaderboardConfiguration()
        configuration.mode = .sum
        configuration.windows = [.allTime, .daily, .weekly, .monthly]
        let board = try Leaderboard("maze", redis: redis, namespace: namespace, configuration: configuration)
        for _ in 0..<2 { try await board.submit(1, for: "alice", id: "an id") }
        try await board.submit(1, for: "alice")
        try await board.submit(5, for: "bob")
        for window in configuration.windows {
            #expect(try await board.top(10, in: window).entries.map(\.score) == [5, 2])
            #expect(try await board.around("alice", 1, in: window).entries.map(\.rank) == [2])
        }
        #expect(try await board.entries(of: ["alice", "bob"]).entries.count == 2)
        #expect(try await board.entry(of: "alice", ago: 1)?.score == 2)
        #expect(try await Leaderboard.rules(of: "maze", redis: redis, namespace: namespace)?.mode == .sum)
        #expect(try await board.remove("alice") == 4)
        try await board.delete()
    }

    private func match(_ office: PostOffice) async throws {
        var configuration = MatchmakerConfiguration()
        configuration.window = MatchWindow(start: 0, step: 10, every: .milliseconds(50), max: 10)
        configuration.takeOverAfter = .milliseconds(100)
        let matchmaker = try Matchmaker(
            "duel", redis: redis, office: office, namespace: namespace, configuration: configuration)
        try await whileRunning({ await matchmaker.run() }) {
            let alice = try await matchmaker.enqueue("alice", rating: 0).ticket
            let bob = try await matchmaker.enqueue("bob", rating: 10, timeout: .seconds(100)).ticket
            try await until("the widening has matched them") { try await matchmaker.state(of: alice) != .waiting }
            #expect(try await matchmaker.cancel(bob) == matchmaker.state(of: alice))
            let carol = try await matchmaker.enqueue("carol", rating: 0, properties: ["a": "b"]).ticket
            #expect(try await matchmaker.cancel(carol) == .cancelled)
            let dave = try await matchmaker.enqueue("dave", rating: 0, timeout: .milliseconds(10)).ticket
            try await until("the ticket times out") { try await matchmaker.state(of: dave) == .timedOut }
            #expect(try await matchmaker.counts().waiting == 0)
            #expect(try await Matchmaker.rules(of: "duel", redis: redis, namespace: namespace)?.size == 2)
            // An outcome that cannot be sent is tried again.
            var limits = MailboxLimits()
            limits.maxMessages = 1
            try await office.mailbox("erin").setLimits(limits)
            try await office.send("full", to: "erin")
            _ = try await matchmaker.enqueue("erin", rating: 0, timeout: .milliseconds(10))
            try await until("the outcome is tried again") {
                try await admin.send("INFO", "commandstats").string?.contains("cmdstat_hexists:calls") == true
            }
            try await office.mailbox("erin").delete()
            try await until("the outcome is told") { try await office.mailbox("erin").count == 1 }
        }
    }
}
