import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import RedisDC
@testable import RedisDCTestSupport

extension PrimitiveTests {
    @Suite("Rate limiter", .serialized)
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
                        group.addTask {
                            for _ in 0..<40 {
                                try await limiter.acquire()
                                await passed.add("")
                            }
                        }
                    }
                    try await group.waitForAll()
                }
                // 10 at once, 70 more at 200 a second: no sooner than that, on however slow a machine.
                #expect(try await now() - start >= 70.0 / 200)
                #expect(await passed.all.count == 80)
            }
        }

        @Test("a decision reports how long to wait and how much is left, and counts the cost")
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

        @Test("rates finer than the clock and bursts beyond its range are limited or refused", arguments: [1, 1000])
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

        @Test("a wait sleeps for as long as the decision says, on the coordinator's clock")
        func clock() async throws {
            try await withServer { _, redis, other in
                let time = ManualClock()
                let coordinator = try Coordinator(
                    redis: redis, namespace: "default", configuration: .init(), clock: time.clock)
                let limiter = try coordinator.rateLimiter("r", rate: 1, per: .seconds(3600))
                try await limiter.acquire()
                let waiting = Task { try await limiter.acquire(timeout: .seconds(3700)) }
                try await until("it sleeps") { time.sleeps.count == 1 }
                let sleep = time.sleeps[0]
                #expect(sleep > .seconds(3000) && sleep <= .seconds(3600))
                // Redis's clock has not moved: only after this may the limit allow the next.
                _ = try await other.send("DEL", .string("rdc:{default:0}:rate:r"))
                time.advance(by: sleep)
                try await waiting.value

                let late = await errorOf { try await limiter.acquire(timeout: .seconds(2)) }
                #expect(late?.code == .timedOut && time.sleeps.isEmpty, "it is certain at once")
                let cancelled = Task { try await limiter.acquire() }
                try await until("it sleeps") { time.sleeps.count == 1 }
                cancelled.cancel()
                #expect(await errorOf { try await cancelled.value }?.code == .cancelled)
            }
        }
    }
}
