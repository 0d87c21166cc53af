import Foundation
import Hiredis
import QueueListen
import RedisDCTesting
import TestSupport
import Testing

@testable import GameServices
@testable import GameServicesTestSupport

extension GameServicesTests {
    @Suite("Matchmakers in several processes")
    struct MatchmakerProcessTests {
        private static let ticketsOfNode = 250

        @Test(
            "of 1,000 tickets from 4 nodes of which one is killed, nobody is in two matches and nobody is forgotten",
            arguments: [2, 4])
        func killed(size: Int) async throws {
            try await withMatchWorld {
                $0.size = size
                $0.nodeTTL = .seconds(2)
                // As in the worker.
                $0.window = MatchWindow(start: 5, step: 40, every: .milliseconds(300), max: 300)
            } _: { world in
                var children = try (0..<4).map { node in
                    try Child(
                        "services-worker",
                        ["match-node", world.server.url, "n\(node)", "\(size)", "\(Self.ticketsOfNode)"])
                }
                let observer = try world.node()
                func enqueued(_ node: Int) async throws -> Int {
                    try await world.redis.send("LLEN", "n\(node)").integer!
                }
                try await until("the node is in the middle of its tickets") {
                    try await isQuiet(world, observer)
                    return try await enqueued(3) > Self.ticketsOfNode / 3
                }
                try await children.removeLast().kill9()
                try await until("the other nodes have enqueued all") {
                    try await isQuiet(world, observer)
                    for node in 0..<3 where try await enqueued(node) < Self.ticketsOfNode { return false }
                    return true
                }
                // The last ticket of the killed node may not have arrived.
                let ofKilled = try await enqueued(3)
                var players = (0..<3).flatMap { node in (1...Self.ticketsOfNode).map { "n\(node)-\($0)" } }
                players += (1..<ofKilled).map { "n3-\($0)" }
                // Nobody is forgotten: every ticket ends by its timeout at the latest.
                for player in players {
                    try await until("\(player) is notified") { try await !world.mail(player).isEmpty }
                }
                try await until("the last ticket has ended") { try await observer.counts().waiting == 0 }
                _ = try await world.redis.send("SET", "stop", "1")
                for child in children { _ = try await child.result() }
                try await check(world, players, last: "n3-\(ofKilled)", size)
            }
        }

        /// At no moment does a suitable group wait.
        private func isQuiet(_ world: MatchWorld, _ observer: Matchmaker) async throws {
            let waiting = try await world.waiting(observer)
            #expect(MatchOracle.suitableGroup(among: waiting, size: world.configuration.size) == nil)
        }

        private func check(_ world: MatchWorld, _ players: [String], last: String, _ size: Int) async throws {
            var matches: [String: Match] = [:]
            var matched: [String: String] = [:]
            var ends = 0
            for player in players + [last] {
                let mail = try await world.mail(player)
                // The killed node's last player may have no ticket.
                #expect(mail.count == 1 || mail.isEmpty && player == last)
                guard let message = mail.first else { continue }
                guard message.type == Matchmaker.matchType else {
                    ends += 1
                    continue
                }
                let match = try message.decode(as: Match.self)
                #expect(matches.updateValue(match, forKey: match.id) ?? match == match)
                #expect(match.players.map(\.name).contains(player) && match.players.count == size)
                matched[player] = match.id
            }
            // All of a match are notified of it, and of no other.
            for match in matches.values {
                for player in match.players { #expect(matched[player.name] == match.id) }
            }
            #expect(!matches.isEmpty)
            #expect(matches.count * size == matched.count && matched.count + ends >= players.count)
        }
    }
}
