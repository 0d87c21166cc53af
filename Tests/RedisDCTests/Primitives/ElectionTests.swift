import Hiredis
import RedisDC
import RedisDCTesting
import TestSupport
import Testing

extension PrimitiveTests {
    @Suite("Election")
    struct ElectionTests {
        @Test("one leads at a time, its terms grow, and observers hear of each change without polling")
        func turns() async throws {
            var configuration = CoordinatorConfiguration()
            // Changes must be told: looking alone would take an hour.
            configuration.pollInterval = .seconds(3600)
            try await withCoordinators(configuration: configuration) { _, one, two, _ in
                let election = try one.election("e")
                let other = try two.election("e")
                #expect(try await other.leader() == nil)
                let seen = Leaders(other)
                try await until("nobody leads") { await seen.last == .some(nil) }
                var last: UInt64 = 0
                for round in 0..<20 {
                    let term = try await (round.isMultiple(of: 2) ? election : other).campaign()
                    #expect(term.fence > last)
                    last = term.fence
                    try await until("it is known who leads") { [last] in await seen.last??.term == last }
                    #expect(await errorOf { _ = try await election.campaign(timeout: .zero) }?.code == .timedOut)
                    try await election.resign(term)
                    try await until("it is known that nobody leads") { await seen.last == .some(nil) }
                }
                let node = try await election.withLeadership { term in
                    let leader = try await other.leader()
                    #expect(leader?.term == term.fence)
                    return leader?.node
                }
                #expect(node?.isEmpty == false)
                #expect(try await other.leader() == nil)
            }
        }

        @Test("a leader that is killed with -9 is followed by the next, with a higher term")
        func death() async throws {
            try await withNodes { node, server, redis in
                let victim = try Child("redisdc-worker", ["engine-hold", server.url, "e"])
                let election = try node.election("e")
                try await until("it leads") { try await election.leader() != nil }
                let first = try #require(try await election.leader())
                let seen = Leaders(election)
                try await until("it is known who leads") { await seen.last == first }
                try await victim.kill9()
                let term = try await election.campaign(timeout: .seconds(60))
                #expect(term.fence > first.term)
                try await until("it is known who follows") { await seen.last??.term == term.fence }
                try await election.resign(term)
            }
        }
    }

    @Suite("Rate limiter")
    struct RateLimiterTests {
        @Test("a burst passes, then as many as the rate allows, by the server's clock, over all nodes")
        func rate() async throws {
            try await withCoordinators { _, one, two, redis in
                func now() async throws -> Double {
                    let time = try await redis.send("TIME").array?.compactMap(\.integer) ?? []
                    return Double(time[0]) + Double(time[1]) / 1e6
                }
                let limiters = try [one, two].map { try $0.rateLimiter("r", rate: 200, per: .seconds(1), burst: 10) }
                let start = try await now()
                let passed = Names()
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for limiter in limiters {
                        group.addTask { for _ in 0..<40 { try await limiter.acquire(); await passed.add("") } }
                    }
                    try await group.waitForAll()
                }
                // 10 at once, 70 more at 200 a second: no sooner than that, on however slow a machine.
                #expect(try await now() - start >= 70.0 / 200)
                #expect(await passed.all.count == 80)
            }
        }

        @Test("says how long to wait, how much is left, and takes a cost")
        func decisions() async throws {
            try await withCoordinators { _, one, _, redis in
                let limiter = try one.rateLimiter("r", rate: 6, per: .seconds(3600))
                let first = try await limiter.tryAcquire(cost: 4)
                #expect(first.isAllowed && first.retryAfter == .zero && first.remaining == 2)
                let refused = try await limiter.tryAcquire(cost: 3)
                #expect(!refused.isAllowed && refused.remaining == 2)
                #expect(refused.retryAfter > .seconds(500) && refused.retryAfter <= .seconds(600))
                #expect(await errorOf { try await limiter.acquire(cost: 3, timeout: .seconds(1)) }?.code == .timedOut)
                #expect(try await limiter.tryAcquire(cost: 2).isAllowed)
                #expect(await errorOf { _ = try await limiter.tryAcquire(cost: 7) }?.code == .invalidArgument)
                let life = try await redis.send("PTTL", "rdc:{default:0}:rate:r").integer ?? 0
                #expect(life > 0 && life <= 3_600_000)
            }
        }

        @Test("rates beyond what the clock can tell apart, and bursts beyond what it can count", arguments: [1, 1000])
        func extremes(milliseconds: Int) async throws {
            try await withCoordinators { _, one, _, redis in
                let fast = try one.rateLimiter("r", rate: 1_000_000_000, per: .milliseconds(milliseconds), burst: 1000)
                for _ in 0..<100 {
                    let decision = try await fast.tryAcquire()
                    #expect(decision.isAllowed && (0..<1000).contains(decision.remaining))
                }
                // Ten thousand microseconds for all: however slow the machine, each of them counts.
                let counted = try one.rateLimiter("c", rate: 10_000_000, per: .seconds(1), burst: 1_000_000_000)
                for _ in 0..<20 { #expect(try await counted.tryAcquire().isAllowed) }
                #expect(
                    await errorOf {
                        _ = try one.rateLimiter("r", rate: 1, per: .seconds(366 * 86400), burst: 1_000_000_000)
                    }?.code == .invalidArgument)
                let slow = try one.rateLimiter("s", rate: 1, per: .seconds(366 * 86400), burst: 3_000)
                #expect(try await slow.tryAcquire(cost: 3_000).isAllowed)
                let refused = try await slow.tryAcquire(cost: 3_000)
                #expect(!refused.isAllowed && refused.retryAfter > .seconds(2_999 * 366 * 86400))
                #expect(await errorOf { try await slow.acquire(timeout: .seconds(-1)) }?.code == .invalidArgument)
            }
        }
    }
}

/// What an observer of an election has heard last.
private actor Leaders {
    private(set) var last: Leader??

    init(_ election: Election) {
        Task { [weak self] in
            for await leader in election.changes() {
                guard let self else { return }
                await self.heard(leader)
            }
        }
    }

    private func heard(_ leader: Leader?) { last = .some(leader) }
}
