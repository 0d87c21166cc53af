import Hiredis
import QueueListen
import RedisDCTesting
import TestSupport
import Testing

@testable import GameServices
@testable import GameServicesTestSupport

extension GameServicesTests {
    @Suite("Matchmakers")
    struct MatchmakerTests {
        @Test("the enqueue that brings the last ticket matches, and all players are notified of the same match")
        func pair() async throws {
            try await withMatchWorld { world in
                let node = try world.node()
                let alice = try await node.enqueue("alice", rating: 1200)
                #expect(alice.state == .waiting)
                let bob = try await node.enqueue("bob", rating: 1300)
                guard case .matched(let match) = bob.state else {
                    Issue.record("\(bob.state)")
                    return
                }
                #expect(match.players.map(\.name) == ["bob", "alice"])
                #expect(match.players.map(\.ticket) == [bob.ticket, alice.ticket])
                #expect(match.players.map(\.rating) == [1300, 1200])
                #expect(try await world.match(of: "alice") == match)
                #expect(try await world.match(of: "bob") == match)
                #expect(try await node.state(of: alice.ticket) == .matched(match))
                #expect(try await node.counts().waiting == 0)
            }
        }

        @Test("a team is complete with its last player and not before", arguments: [3, 16])
        func teams(size: Int) async throws {
            try await withMatchWorld {
                $0.size = size
            } _: { world in
                let nodes = [try world.node(), try world.node()]
                for number in 1..<size {
                    #expect(try await nodes[number % 2].enqueue("p\(number)", rating: number).state == .waiting)
                }
                let last = try await nodes[0].enqueue("p\(size)", rating: -5).state
                for number in 1...size {
                    let match = try await world.match(of: "p\(number)")
                    #expect(last == .matched(match) && match.players.count == size)
                }
            }
        }

        @Test("ratings match within both windows, the limits included")
        func windows() async throws {
            try await withMatchWorld {
                $0.window = MatchWindow(start: 100, step: 0, every: .seconds(1), max: 100)
            } _: { world in
                let node = try world.node()
                #expect(try await node.enqueue("alice", rating: 0).state == .waiting)
                #expect(try await node.enqueue("bob", rating: 101).state == .waiting)
                #expect(try await node.enqueue("carol", rating: -100).state != .waiting)
                #expect(try await world.match(of: "alice").players.map(\.name) == ["carol", "alice"])
                #expect(try await node.enqueue("dave", rating: Matchmaker.maxRating).state == .waiting)
                #expect(try await node.enqueue("erin", rating: -Matchmaker.maxRating).state == .waiting)
            }
        }

        @Test("the widening of a window matches, by the node of either ticket")
        func widening() async throws {
            try await withMatchWorld {
                $0.window = MatchWindow(start: 0, step: 60, every: .milliseconds(100), max: 200)
            } _: { world in
                try await world.withNode { node in
                    let other = try world.node()
                    #expect(try await node.enqueue("alice", rating: 0).state == .waiting)
                    #expect(try await other.enqueue("bob", rating: 200).state == .waiting)
                    // Both windows must be at their largest.
                    #expect(try await Set(world.match(of: "bob").players.map(\.name)) == ["alice", "bob"])
                }
            }
        }

        @Test("tickets with different properties do not meet")
        func properties() async throws {
            try await withMatchWorld { world in
                let node = try world.node()
                let tickets: [[String: String]] = [
                    [:], ["mode": "fast"], ["mode": "slow"], ["mode": "fast", "map": "a"], ["mod": "e=fast"],
                    ["map": ""],
                ]
                for (number, properties) in tickets.enumerated() {
                    #expect(try await node.enqueue("p\(number)", rating: 0, properties: properties).state == .waiting)
                }
                for (number, properties) in tickets.enumerated() {
                    _ = try await node.enqueue("q\(number)", rating: 0, properties: properties)
                    let match = try await world.match(of: "q\(number)")
                    #expect(match.players.map(\.name) == ["q\(number)", "p\(number)"])
                }
            }
        }

        @Test("who waits longest is matched first, whatever the distance")
        func priority() async throws {
            try await withMatchWorld {
                $0.window = MatchWindow(start: 10, step: 0, every: .seconds(1), max: 10)
            } _: { world in
                let node = try world.node()
                // These two are not suitable for each other.
                _ = try await node.enqueue("alice", rating: 10)
                _ = try await node.enqueue("bob", rating: -1)
                _ = try await node.enqueue("carol", rating: 0)
                #expect(try await world.match(of: "carol").players.map(\.name) == ["carol", "alice"])
            }
        }

        @Test("a cancelled ticket is not matched, and a cancel after the match answers the match")
        func cancel() async throws {
            try await withMatchWorld { world in
                let (node, other) = (try world.node(), try world.node())
                let alice = try await node.enqueue("alice", rating: 0).ticket
                #expect(try await other.cancel(alice) == .cancelled)
                #expect(try await node.cancel(alice) == .cancelled)
                #expect(try await node.enqueue("alice", rating: 0, ticket: alice).state == .cancelled)
                let bob = try await node.enqueue("bob", rating: 0).ticket
                #expect(try await node.state(of: bob) == .waiting)
                let again = try await node.enqueue("alice", rating: 0)
                #expect(try await other.cancel(bob) == again.state)
                #expect(try await other.cancel(again.ticket) == .matched(world.match(of: "bob")))
                #expect(await errorOf { try await node.cancel("unknown") }?.code == .notFound)
            }
        }

        @Test("cancels and enqueues at the same time: each ticket is cancelled or matched, and never both")
        func cancelRaces() async throws {
            try await withMatchWorld { world in
                let (node, other) = (try world.node(), try world.node())
                for round in 0..<100 {
                    let ticket = try await node.enqueue("a\(round)", rating: 0).ticket
                    async let cancelled = other.cancel(ticket)
                    let second = try await node.enqueue("b\(round)", rating: 0)
                    switch try await cancelled {
                    case .cancelled:
                        #expect(second.state == .waiting)
                        try await node.cancel(second.ticket)
                    case let state: #expect(state == second.state)
                    }
                }
            }
        }

        @Test("a ticket ends at its timeout, and its player is notified once")
        func timeout() async throws {
            try await withMatchWorld { world in
                try await world.withNode { node in
                    let ticket = try await node.enqueue("alice", rating: 0, timeout: .milliseconds(100)).ticket
                    #expect(try await world.end(of: "alice") == .timedOut)
                    #expect(try await node.state(of: ticket) == .timedOut)
                    #expect(try await node.cancel(ticket) == .timedOut)
                    // The player is free again.
                    #expect(try await node.enqueue("alice", rating: 0).state == .waiting)
                    #expect(try await world.mail("alice").count == 1)
                }
            }
        }

        @Test("a player has one waiting ticket, and a repeated enqueue is the same ticket")
        func oneTicket() async throws {
            try await withMatchWorld { world in
                let (node, other) = (try world.node(), try world.node())
                let ticket = try await node.enqueue("alice", rating: 0).ticket
                #expect(await errorOf { try await other.enqueue("alice", rating: 0) }?.code == .conflict)
                #expect(try await other.enqueue("alice", rating: 0, ticket: ticket).state == .waiting)
                #expect(
                    await errorOf { try await other.enqueue("alice", rating: 1, ticket: ticket) }?.code == .conflict)
                #expect(await errorOf { try await other.enqueue("bob", rating: 0, ticket: ticket) }?.code == .conflict)
                #expect(try await node.counts().waiting == 1)
                let state = try await node.enqueue("bob", rating: 0).state
                #expect(try await other.enqueue("alice", rating: 0, ticket: ticket).state == state)
                #expect(try await node.counts().waiting == 0)
                #expect(try await world.match(of: "alice") == world.match(of: "bob"))
            }
        }

        @Test("nodes with another size or window are refused")
        func rules() async throws {
            try await withMatchWorld { world in
                _ = try await world.node().enqueue("alice", rating: 0)
                var other = world
                other.configuration.size = 3
                let node = try other.node()
                #expect(await errorOf { try await node.enqueue("bob", rating: 0) }?.code == .conflict)
                #expect(await errorOf { _ = try await node.tick() }?.code == .conflict)
            }
        }

        @Test("settings and arguments that are not allowed are refused before anything is sent")
        func validation() async throws {
            let redis = try RedisClient(url: "redis://127.0.0.1:1")
            let office = try PostOffice(redis: redis)
            func refuses(_ change: (inout MatchmakerConfiguration) -> Void) {
                var configuration = MatchmakerConfiguration()
                change(&configuration)
                #expect(throws: GameServiceError.self) {
                    try Matchmaker("duel", redis: redis, office: office, configuration: configuration)
                }
            }
            refuses { $0.size = 1 }
            refuses { $0.size = 17 }
            refuses { $0.window = MatchWindow(start: -1, step: 1, every: .seconds(1), max: 5) }
            refuses { $0.window = MatchWindow(start: 5, step: 1, every: .seconds(1), max: 4) }
            refuses { $0.window = MatchWindow(start: 0, step: 1, every: .seconds(1), max: 32) }
            refuses { $0.window = MatchWindow(start: 0, step: 1, every: .zero, max: 5) }
            refuses { $0.nodeTTL = .zero }
            refuses { $0.endedTicketLifetime = .seconds(601) }
            let node = try Matchmaker("duel", redis: redis, office: office)
            for name in ["", "{", "a\n"] {
                #expect(await errorOf { try await node.enqueue(name, rating: 0) }?.code == .invalidArgument)
                #expect(await errorOf { try await node.cancel(name) }?.code == .invalidArgument)
                #expect(throws: GameServiceError.self) { try Matchmaker(name, redis: redis, office: office) }
            }
            for rating in [Matchmaker.maxRating + 1, .min] {
                #expect(await errorOf { try await node.enqueue("a", rating: rating) }?.code == .invalidArgument)
            }
            for properties in [["a=": "b"], ["": "b"], ["a": "\n"], ["a": String(repeating: "b", count: 255)]] {
                #expect(
                    await errorOf { try await node.enqueue("a", rating: 0, properties: properties) }?.code
                        == .invalidArgument)
            }
            #expect(await errorOf { try await node.enqueue("a", rating: 0, timeout: .zero) }?.code == .invalidArgument)
        }
    }
}
