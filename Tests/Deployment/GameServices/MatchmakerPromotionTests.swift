// Matchmakers, while a replica is promoted that lacks the last writes.
import CoordinationBase
import Hiredis
import QueueListen
import RedisDCTesting
import TestSupport
import Testing

@testable import GameServices
@testable import GameServicesTestSupport

/// Runs `body` with nodes of a matchmaker in two processes.
private func withNodes(
    _ body: (ReplicatedServers, _ one: Matchmaker, _ two: Matchmaker) async throws -> Void
) async throws {
    try await withReplicatedServers { servers in
        try await withNode(url: servers.url) { one in
            try await withNode(url: servers.url) { two in try await body(servers, one, two) }
        }
    }
}

/// Runs `body` with a node that is not run by itself, so that nothing happens behind the test.
private func withNode(url: String, _ body: (Matchmaker) async throws -> Void) async throws {
    var configuration = MatchmakerConfiguration()
    configuration.callTimeout = patience
    // No ticket ends because the machine stands still.
    configuration.nodeTTL = .seconds(3600)
    try await withTestClient(url: url) { redis in
        try await withPostOffice(redis: redis) { office in
            try await body(try Matchmaker("duel", redis: redis, office: office, configuration: configuration))
        }
    }
}

private func match(_ state: TicketState) -> [String]? {
    if case .matched(let match) = state { match.players.map(\.name).sorted() } else { nil }
}

extension GameServicesTests {
    @Suite("Matchmakers and a replica that lacks the last writes", .timeLimit(.minutes(5)))
    struct MatchmakerPromotionTests {
        @Test("a waiting ticket that is lost is enqueued again, with its timeout")
        func waiting() async throws {
            try await withNodes { servers, one, two in
                try await servers.cutReplication()
                let alice = try await one.enqueue("alice", rating: 0, properties: ["map": "x"], ticket: "a").ticket
                try await one.enqueue("bob", rating: 0, timeout: .seconds(2))
                await servers.promote()
                #expect(try await one.state(of: alice) == .waiting)
                #expect(try await one.counts().waiting == 2)
                // A repetition is that of the same ticket.
                let again = try await two.enqueue("alice", rating: 0, properties: ["map": "x"], ticket: "a").state
                #expect(again == .waiting)
                try await until("the other one times out") {
                    _ = try await two.tick()
                    return try await two.counts().waiting == 1
                }
                let last = try await two.enqueue("carol", rating: 0, properties: ["map": "x"]).state
                #expect(match(last) == ["alice", "carol"])
            }
        }

        @Test(
            "a cancellation that is lost is repeated, and the ticket is not enqueued again", arguments: [false, true])
        func cancelled(withEnqueue: Bool) async throws {
            try await withNodes { servers, one, two in
                if withEnqueue { try await servers.cutReplication() }
                try await one.enqueue("alice", rating: 0, ticket: "a")
                if !withEnqueue { try await servers.cutReplication() }
                // The node of the ticket and that of the cancellation come in any order.
                #expect(try await two.cancel("a") == .cancelled)
                await servers.promote()
                _ = try await one.counts()
                #expect(try await two.state(of: "a") == .cancelled)
                #expect(try await one.state(of: "a") == .cancelled)
                #expect(try await one.enqueue("bob", rating: 0).state == .waiting)
            }
        }

        @Test("a match that is lost is the same match again, whatever its tickets are there")
        func matched() async throws {
            try await withNodes { servers, one, two in
                try await one.enqueue("alice", rating: 0, ticket: "a")
                try await servers.cutReplication()
                let match = try await two.enqueue("bob", rating: 0, ticket: "b").state
                await servers.promote()
                // This node believes that its ticket waits.
                _ = try await one.counts()
                #expect(try await two.state(of: "a") == match)
                #expect(try await one.state(of: "b") == match)
                #expect(try await one.counts().waiting == 0)
                #expect(try await two.enqueue("carol", rating: 0).state == .waiting)
            }
        }

        @Test("a repair that is interrupted goes on with the next connection, also behind much that was repaired")
        func interrupted() async throws {
            try await withNodes { servers, one, _ in
                try await servers.cutReplication()
                try await one.enqueue("alice", rating: 0, properties: ["map": "first"])
                try await one.enqueue("bob", rating: 0, properties: ["map": "second"])
                // More outcomes than a comparison needs in a row, and they are repeated before all tickets.
                for number in 0..<150 {
                    try await one.enqueue("carol", rating: 0, ticket: "c\(number)")
                    #expect(try await one.cancel("c\(number)") == .cancelled)
                }
                await servers.proxy.dropNextReply(matching: "first")
                await servers.promote()
                #expect(try await one.counts().waiting == 2)
                #expect(servers.proxy.counters.droppedReplies == 1)
            }
        }

        @Test("a lost match whose ticket is in another match is reported, and nothing is overwritten")
        func otherMatch() async throws {
            try await withNodes { servers, one, two in
                try await one.enqueue("alice", rating: 0, ticket: "a")
                try await servers.cutReplication()
                let lost = try await two.enqueue("bob", rating: 0, ticket: "b").state
                #expect(match(lost) == ["alice", "bob"])
                try await withNode(url: servers.replica.url) { other in
                    let state = try await other.enqueue("carol", rating: 0).state
                    #expect(match(state) == ["alice", "carol"])
                }
                await servers.promote()
                let state = try await two.state(of: "a")
                #expect(match(state) == ["alice", "carol"])
                #expect(two.memory?.confirmations.withLog { $0.lossCount } == 1)
                #expect(one.memory?.confirmations.withLog { $0.lossCount } == 0)
            }
        }
    }
}
