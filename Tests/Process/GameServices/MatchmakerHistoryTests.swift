import Hiredis
import RedisDCTesting
import TestRandom
import TestSupport
import Testing

@testable import GameServices
@testable import GameServicesTestSupport

extension GameServicesTests {
    @Suite("Matchmakers against an oracle")
    struct MatchmakerHistoryTests {
        /// Each is compared with the group that a search through all groups finds.
        @Test(
            "each enqueue and each widening of a random history matches exactly the group that has waited longest",
            arguments: [2, 3, 4, 5])
        func history(size: Int) async throws {
            let seed = testSeed()
            var generator = SplitMix(seed: seed)
            var matches = 0
            for window in [(0, 5, 60), (1, 3, 31), (5, 25, 60), (0, 0, 0), (100, 100, 300)] {
                matches += try await withMatchWorld {
                    $0.size = size
                    $0.window = MatchWindow(
                        start: window.0, step: max(window.1, (window.2 - window.0 + 9) / 10), every: .seconds(3600),
                        max: window.2)
                } _: { world in
                    let node = try world.node()
                    var matches = 0
                    for step in 0..<120 {
                        if try await play(step, world, node, size, &generator, seed) { matches += 1 }
                        let waiting = try await world.waiting(node)
                        #expect(MatchOracle.suitableGroup(among: waiting, size: size) == nil, "seed \(seed)")
                    }
                    return matches
                }
            }
            #expect(matches > 0)
        }

        /// Does one random operation, and returns whether it made a match.
        private func play(
            _ step: Int, _ world: MatchWorld, _ node: Matchmaker, _ size: Int, _ generator: inout SplitMix,
            _ seed: UInt64
        ) async throws -> Bool {
            let before = try await world.waiting(node)
            let choice = Int.random(in: 0..<10, using: &generator)
            if choice < 6 || before.isEmpty {
                let ticket = WaitingTicket(
                    id: "t\(step)", properties: Bool.random(using: &generator) ? "" : "a=1",
                    rating: .random(in: 0...(40 * size), using: &generator),
                    distance: world.configuration.window.start, stamp: "")
                let expected = MatchOracle.group(of: ticket, among: before, size: size)
                let state = try await node.enqueue(
                    "player of \(ticket.id)", rating: ticket.rating,
                    properties: ticket.properties.isEmpty ? [:] : ["a": "1"], ticket: ticket.id
                ).state
                return check(state, ticket.id, expected, seed)
            }
            let ticket = before.randomElement(using: &generator)!
            if choice == 6 {
                #expect(try await node.cancel(ticket.id) == .cancelled)
                return false
            }
            let widened = try await age(ticket, by: .random(in: 1...3, using: &generator), world, node)
            let others = before.filter { $0.id != ticket.id }
            let expected = MatchOracle.group(of: widened, among: others, size: size)
            _ = try await node.tick()
            return check(try await node.state(of: ticket.id), ticket.id, expected, seed)
        }

        private func check(_ state: TicketState, _ ticket: String, _ expected: [String]?, _ seed: UInt64) -> Bool {
            guard case .matched(let match) = state else {
                #expect(state == .waiting && expected == nil, "seed \(seed)")
                return false
            }
            #expect(match.players.map(\.ticket) == [ticket] + (expected ?? []), "seed \(seed)")
            return true
        }

        /// Lets a ticket wait some intervals longer, and returns it with the window that it must have then.
        private func age(
            _ ticket: WaitingTicket, by intervals: Int, _ world: MatchWorld, _ node: Matchmaker
        ) async throws -> WaitingTicket {
            let (state, field) = (RedisArgument.string(node.keys[0]), RedisArgument.string("t:" + ticket.id))
            var lines = try await world.redis.send("HGET", state, field).string!.split(
                separator: "\n", omittingEmptySubsequences: false
            ).map(String.init)
            let window = world.configuration.window
            lines[7] = "\(Int(lines[7])! - intervals * window.interval.wholeMilliseconds)"
            _ = try await world.redis.send("HSET", state, field, .string(lines.joined(separator: "\n")))
            _ = try await world.redis.send("ZADD", .string(node.keys[2]), 1, .string("t" + ticket.id))
            var widened = ticket
            let time = try await world.redis.send("TIME").array!.map { Int($0.string!)! }
            let now = time[0] * 1000 + time[1] / 1000
            let level = (now - Int(lines[7])!) / window.interval.wholeMilliseconds
            widened.distance = window.distance(after: min(level, window.widenings))
            return widened
        }
    }
}
