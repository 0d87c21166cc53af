import Foundation
import RedisDCTesting
import TestSupport
import Testing

@testable import RedisDCToolTestSupport

/// A line of the tool's JSON.
private struct Line: Decodable {
    struct Match: Decodable {
        struct Player: Decodable { var name: String }
        var id: String
        var players: [Player]
    }
    var rank: Int?
    var name: String?
    var score: Int?
    var entryCount: Int?
    var isChanged: Bool?
    var removed: Int?
    var ticket: String?
    var state: String?
    var match: Match?
    var waiting: Int?
    var event: String?
    var key: String?
    var user: String?
    var value: String?
    var reason: String?
    var objects: Int?
}

private func lines(_ output: String) throws -> [Line] {
    try output.split(separator: "\n").map { try JSONDecoder().decode(Line.self, from: Data($0.utf8)) }
}

@Suite("redisdc board, match, presence")
struct ServiceToolTests {
    @Test("a leaderboard ranks submits, counts a repeated one once, and keeps its rules")
    func board() async throws {
        try await withEngineTool { tool in
            func submit(_ words: String...) async throws -> Child.End {
                let all = ["board", "submit"] + words + ["--json"]
                return try await Child("redisdc", all, environment: ["REDIS_URL": tool.server.url]).end()
            }
            for _ in 0..<2 {
                let end = try await submit("maze", "alice", "10", "--id", "run-1", "--mode", "sum")
                #expect(end.status == 0, "\(end.error)")
                #expect(try lines(end.output).map(\.score) == [10])
            }
            // The leaderboard exists, so --mode has no effect.
            let second = try lines(try await submit("maze", "alice", "5", "--mode", "latest").output)
            #expect(second.map(\.score) == [15] && second[0].isChanged == true)
            for (name, score) in [("bob", "20"), ("carol", "15")] { _ = try await submit("maze", name, score) }

            func entries(_ words: String...) async throws -> [String] {
                let all = ["board"] + words + ["--json"]
                let end = try await Child("redisdc", all, environment: ["REDIS_URL": tool.server.url]).end()
                return try lines(end.output).map { "\($0.rank!) \($0.name!) \($0.score!)" }
            }
            #expect(try await entries("top", "maze") == ["1 bob 20", "2 alice 15", "3 carol 15"])
            #expect(try await entries("top", "maze", "--limit", "1", "--skip", "1") == ["2 alice 15"])
            #expect(try await entries("around", "maze", "carol", "--limit", "2") == ["2 alice 15", "3 carol 15"])
            #expect(try await entries("rank", "maze", "carol", "bob", "nobody") == ["1 bob 20", "3 carol 15"])
            #expect(try await tool.run("board", "top", "maze", "--limit", "1").output == "1  20  bob")
            #expect(try await entries("top", "maze", "--window", "weekly") == [])

            let removed = try lines(try await tool.run("board", "remove", "maze", "bob", "--json").output)
            #expect(removed[0].removed == 1)
            #expect(try await entries("top", "maze") == ["1 alice 15", "2 carol 15"])
            #expect(try await tool.run("board", "top", "maze", "--window", "yearly").status == 64)
            #expect(try await tool.run("board", "top", "maze", "--limit", "0").status == 65)
        }
    }

    @Test("two players of a matchmaker are matched, and a ticket ends by its timeout or when it is cancelled")
    func match() async throws {
        try await withEngineTool { tool in
            func waiting() async throws -> Int? {
                try lines(try await tool.run("match", "counts", "duel", "--json").output)[0].waiting
            }
            let alice = try tool.start("match", "enqueue", "duel", "alice", "--rating", "100", "--json")
            try await until("alice waits") { try await waiting() == 1 }
            let bob = try await tool.run("match", "enqueue", "duel", "bob", "--rating", "110", "--json")
            #expect(bob.status == 0, "\(bob.error)")
            let matches = try [try await alice.result(), bob.output].map { try #require(lines($0).last?.match) }
            #expect(Set(matches.map(\.id)).count == 1)
            #expect(matches[0].players.map(\.name).sorted() == ["alice", "bob"])

            let shown = try lines(bob.output)[0]
            let ticket = try #require(shown.ticket)
            let again = try lines(try await tool.run("match", "show", "duel", ticket, "--json").output)
            #expect(again[0].state == "matched")
            // Too late: the state in which it has ended.
            #expect(try await tool.run("match", "cancel", "duel", ticket).output.hasPrefix("matched"))

            let alone = try await tool.run("match", "enqueue", "duel", "carol", "--timeout", "0.2", "--json")
            #expect(alone.status == 75, "\(alone.error)")
            #expect(try lines(alone.output).last?.state == "timedOut")
            #expect(try await tool.run("match", "enqueue", "duel", "carol", "--property", "mode").status == 65)
            #expect(try await tool.run("match", "show", "duel", "no-such-ticket").status == 65)
        }
    }

    @Test("an object is present while its command runs, and leaves when it is interrupted")
    func presence() async throws {
        try await withEngineTool { tool in
            let watch = try tool.start("presence", "watch", "lobby", "--json")
            let put = try tool.start("presence", "put", "lobby", "alice", "ready", "--user", "alice")
            func snapshot() async throws -> [Line] {
                try lines(try await tool.run("presence", "snapshot", "lobby", "--json").output)
            }
            try await until("the object is there") { try await !snapshot().isEmpty }
            let object = try #require(try await snapshot().first)
            #expect(object.key == "alice" && object.user == "alice" && object.value == "ready")
            let refused = try await tool.run("presence", "put", "lobby", "alice", "mine", "--user", "bob")
            #expect(refused.status == 75, "\(refused.error)")
            put.interrupt()
            #expect(try await put.end().status == 0)
            try await until("the object has left") { try await snapshot().isEmpty }
            watch.interrupt()
            let events = try lines(try await watch.end().output)
            #expect(events.first?.event == "snapshot")
            #expect(events.contains { $0.event == "left" && $0.key == "alice" }, "\(events)")
            #expect(try await tool.run("presence", "put", "lobby", "a", "b", "--user", "u", "--ttl", "0").status == 64)
        }
    }
}
