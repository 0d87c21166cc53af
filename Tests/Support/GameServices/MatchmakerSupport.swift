// Helpers that the tests of matchmakers share.
import Hiredis
import QueueListen
import RedisDCTesting
import TestSupport
import Testing

@testable import GameServices

/// A private server, a post office, and matchmakers made on it.
struct MatchWorld: Sendable {
    let server: LocalRedis
    let redis: RedisClient
    /// The client of the nodes.
    let scripts: any Redis
    let office: PostOffice
    var configuration: MatchmakerConfiguration

    /// Makes a node, which does nothing by time unless it is run.
    func node(_ name: String = "duel") throws -> Matchmaker {
        try Matchmaker(name, redis: scripts, office: office, configuration: configuration)
    }

    /// Calls `body` with a node that runs meanwhile.
    func withNode<Result>(_ name: String = "duel", _ body: (Matchmaker) async throws -> Result) async throws -> Result {
        let node = try node(name)
        return try await whileRunning({ await node.run() }, { try await body(node) })
    }

    /// The messages in a player's mailbox.
    func mail(_ player: String) async throws -> [ReceivedMessage] { try await office.mailbox(player).peek() }

    /// Waits for a player's only message.
    func message(to player: String) async throws -> ReceivedMessage {
        try await until("\(player) is notified") { try await !mail(player).isEmpty }
        let messages = try await mail(player)
        #expect(messages.count == 1)
        return messages[0]
    }

    /// Waits until a player is notified of a match, and returns it.
    func match(of player: String) async throws -> Match {
        let message = try await message(to: player)
        #expect(message.type == Matchmaker.matchType)
        return try message.decode(as: Match.self)
    }

    /// Waits until a player is notified of the end of a ticket, and returns why.
    func end(of player: String) async throws -> EndedTicket.Reason {
        let message = try await message(to: player)
        #expect(message.type == Matchmaker.endedType)
        return try message.decode(as: EndedTicket.self).reason
    }

    /// The waiting tickets, as one command of Redis reads them.
    func waiting(_ matchmaker: Matchmaker) async throws -> [WaitingTicket] {
        let members = try await redis.send("ZRANGE", .string(matchmaker.keys[1]), 0, -1).array ?? []
        return members.compactMap { $0.string.flatMap { WaitingTicket($0, configuration.window) } }
    }
}

/// Runs a private server with a post office.
func withMatchWorld<Result>(
    configure: (inout MatchmakerConfiguration) -> Void = { _ in }, _ body: (MatchWorld) async throws -> Result
) async throws -> Result {
    var configuration = MatchmakerConfiguration()
    configuration.callTimeout = patience
    configuration.takeOverAfter = .milliseconds(200)
    configure(&configuration)
    return try await withLocalRedis { [configuration] server in
        try await withRedisClient(url: server.url) { redis in
            var ofOffice = PostOfficeConfiguration()
            ofOffice.callTimeout = patience
            return try await withPostOffice(redis: redis, configuration: ofOffice) { office in
                let world = MatchWorld(
                    server: server, redis: redis, scripts: MovingSlotRedis(redis), office: office,
                    configuration: configuration)
                return try await body(world)
            }
        }
    }
}

/// A waiting ticket, as its member of the index describes it.
struct WaitingTicket: Hashable {
    var id: String
    var properties: String
    var rating: Int
    /// The current distance of its window.
    var distance: Int
    /// The time at which it was enqueued, as a text that grows.
    var stamp: String

    init(id: String, properties: String, rating: Int, distance: Int, stamp: String) {
        (self.id, self.properties, self.rating, self.distance, self.stamp) = (id, properties, rating, distance, stamp)
    }

    /// - Parameter member: see Lua/match_tickets.lua. `nil` for the members by node.
    init?(_ member: String, _ window: MatchWindow) {
        guard member.first == "q", let end = member.firstIndex(of: "\n") else { return nil }
        let fields = Array(member[member.index(after: end)...].utf8)
        func text(_ range: Range<Int>) -> String { String(decoding: fields[range], as: UTF8.self) }
        id = text(44..<fields.count)
        properties = String(member[member.index(after: member.startIndex)..<end])
        rating = Int(text(2..<14), radix: 16)! - 1 << 42
        distance = window.distance(after: Int(text(0..<2), radix: 16)!)
        stamp = text(14..<28)
    }
}

/// The definition of a match, without any cleverness.
enum MatchOracle {
    /// Whether everyone is within everyone's window.
    static func isSuitable(_ group: [WaitingTicket]) -> Bool {
        group.allSatisfy { one in
            group.allSatisfy { abs($0.rating - one.rating) <= one.distance && $0.properties == one.properties }
        }
    }

    /// The group of a ticket and others that must be matched: of the suitable ones, the one whose members have waited
    /// longest, the longest waiting member first.
    static func group(of ticket: WaitingTicket, among others: [WaitingTicket], size: Int) -> [String]? {
        var best: [WaitingTicket]?
        let others = others.filter { isSuitable([ticket, $0]) }.sorted { $0.stamp < $1.stamp }
        func extend(_ group: [WaitingTicket], from next: Int) {
            if group.count == size - 1 {
                let isOlder = best.map { group.map(\.stamp).lexicographicallyPrecedes($0.map(\.stamp)) } ?? true
                if isOlder { best = group }
                return
            }
            for index in next..<max(next, others.count) where isSuitable(group + [ticket, others[index]]) {
                extend(group + [others[index]], from: index + 1)
            }
        }
        extend([], from: 0)
        return best.map { $0.map(\.id) }
    }

    /// A suitable group among waiting tickets, which must not exist.
    static func suitableGroup(among tickets: [WaitingTicket], size: Int) -> [String]? {
        for (index, ticket) in tickets.enumerated() {
            if let group = group(of: ticket, among: Array(tickets.suffix(from: index + 1)), size: size) {
                return [ticket.id] + group
            }
        }
        return nil
    }
}

extension MatchWindow {
    /// Returns the distance after a number of widenings.
    func distance(after widenings: Int) -> Int { Swift.min(max, start + widenings * step) }
}
