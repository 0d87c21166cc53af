// Locks when the clock of a client or of the server is wrong.
import Foundation
import Hiredis
import RedisDC
import RedisDCTesting
import TestSupport
import Testing

@testable import RedisDCTestSupport

private let hour = Duration.seconds(3600)

/// A TTL that is short enough for sessions to expire during a test.
private let short: CoordinatorConfiguration = {
    var configuration = CoordinatorConfiguration()
    configuration.ttl = .seconds(2)
    return configuration
}()

extension EngineTests {
    @Suite("Wrong clocks", .serialized, .enabled(if: ShiftedClock.isAvailable, "\(ShiftedClock.requirement)"))
    struct ClockTests {
        // MARK: Clients

        @Test(
            "processes whose clocks are an hour off exclude each other and other processes",
            arguments: [hour, .zero - hour])
        func client(shift: Duration) async throws {
            try await ShiftedClock.with { clock in
                try clock.set(shift)
                try await withServer { server, redis, _ in
                    let workers = try (0..<4).map { number in
                        try Child(
                            "redisdc-worker", ["engine-turns", server.url, "m", "100"],
                            environment: number < 2 ? clock.environment : [:])
                    }
                    var clocks: [Double] = []
                    for worker in workers { clocks.append(Double(try await worker.result())!) }
                    #expect(try await redis.send("GET", "count").string == "400")
                    // The first two clocks were wrong, the others right. The workers ended a few minutes ago at most.
                    let now = Date().timeIntervalSince1970
                    for (number, clock) in clocks.enumerated() {
                        let expected = now + (number < 2 ? shift / .seconds(1) : 0)
                        #expect(abs(clock - expected) < 1000)
                    }
                }
            }
        }

        @Test(
            "a holder whose clock is set keeps its lease, and is notified in time when its session expires",
            arguments: [hour, .zero - hour])
        func holder(shift: Duration) async throws {
            try await ShiftedClock.with { clock in
                try await withServer { server, redis, _ in
                    try await withCoordinator(redis: redis, configuration: mediumTTL) { coordinator in
                        let holder = try Child(
                            "redisdc-worker", ["engine-hold", server.url, "m"], environment: clock.environment)
                        try await until("the worker holds the mutex") {
                            try await redis.send("LLEN", "log").integer == 1
                        }
                        try clock.set(shift)
                        try await untilHeartbeats(2, redis)
                        #expect(try await redis.send("LLEN", "log").integer == 1)
                        kill(holder.processID, SIGSTOP)
                        let lease = try await coordinator.mutex("m").lock(timeout: patience)
                        kill(holder.processID, SIGCONT)
                        _ = try await holder.result()
                        let log = try await redis.send("LRANGE", "log", 1, -1).array?.map(\.string)
                        #expect(log == ["cancelled false", "lost"])
                        try await lease.release()
                    }
                }
            }
        }

        // MARK: The server

        /// Runs `body` with a server whose clock can be set, and two coordinators.
        private func withClock(
            _ body: (ShiftedClock, _ one: Coordinator, _ two: Coordinator, _ redis: RedisClient) async throws -> Void
        ) async throws {
            var configuration = CoordinatorConfiguration()
            configuration.ttl = .seconds(5)
            try await ShiftedClock.with { clock in
                try await withCoordinators(.init(binary: try clock.server()), configuration: configuration) {
                    _, one, two, redis in try await body(clock, one, two, redis)
                }
            }
        }

        /// Sets the server's clock, and checks that commands and scripts use it.
        private func set(_ clock: ShiftedClock, _ shift: Duration, _ redis: RedisClient) async throws {
            try clock.set(shift)
            var time = 0
            // A server may have read its clock a moment before the command.
            try await until("commands use the clock") {
                time = try await redis.send("TIME").array?.first?.integer ?? 0
                return abs(Double(time) - Date().timeIntervalSince1970 - shift / .seconds(1)) < 1000
            }
            let inScript = try await redis.send("EVAL", "return redis.call('TIME')[1]", 0).integer ?? 0
            #expect((time...time + 1000).contains(inScript))
        }

        @Test(
            "when the server's clock jumps forward, sessions expire, holders are notified and fences grow")
        func forward() async throws {
            try await withClock { clock, one, two, redis in
                let events = one.events()
                let lease = try await one.mutex("m").lock()
                let (lost, losing) = AsyncStream.makeStream(of: RedisDCError.self)
                lease.onLoss { losing.yield($0) }
                try await set(clock, hour, redis)
                var losses = lost.makeAsyncIterator()
                #expect(await losses.next()?.code == .lost)
                #expect(!lease.isHeld)
                for await event in events { if case .sessionLost = event { break } }
                let successor = try await two.mutex("m").lock(timeout: .seconds(60))
                #expect(successor.fence > lease.fence)
                // After the jump, sessions continue as usual.
                try await untilHeartbeats(2, redis)
                #expect(successor.isHeld)
                try await successor.release()
                try await one.mutex("m").withLock(timeout: .seconds(60)) { #expect($0.fence > successor.fence) }
            }
        }

        @Test("no wait remains without a grant after the server's clock was ahead for a moment")
        func ahead() async throws {
            try await withClock { clock, one, two, redis in
                let waiters = try (0..<20).map { number in
                    let semaphore = try one.semaphore("s\(number)", permits: 0)
                    return Task { try await semaphore.wait(timeout: .seconds(110)) }
                }
                let signalling = try (0..<20).map { try two.semaphore("s\($0)", permits: 0) }
                try await until("all wait") {
                    try await redis.send("ZLEXCOUNT", "rdc:{default:0}:index", "[q", "(r").integer == 20
                }
                // The sessions of both have slots already, so the signals are served.
                try await signalling[0].signal()
                try await set(clock, hour, redis)
                for semaphore in signalling.dropFirst() { try await semaphore.signal() }
                try await set(clock, .zero, redis)
                for waiter in waiters { try await waiter.value }
            }
        }

        @Test(
            "when the server's clock jumps back, leases are kept, fences grow and dead sessions seem alive")
        func backward() async throws {
            try await withClock { clock, one, two, redis in
                let lease = try await one.mutex("m").lock()
                let dead = try await ForeignNode(redis)
                let granted = try await dead.request("acquire", "d", ["mf", "1", "m"])
                #expect(granted != ["0"])
                let waiting = Task { try await two.mutex("d").lock(timeout: .seconds(120)) }
                try await until("the waiter is queued") { try await one.inspect("d")?.waiterCount == 1 }
                try await set(clock, .zero - hour, redis)
                try await untilHeartbeats(2, redis, besides: dead.session)
                #expect(lease.isHeld)
                try await lease.release()
                try await two.mutex("m").withLock { #expect($0.fence > lease.fence) }
                #expect(try await one.inspect("d")?.waiterCount == 1)
                let ends = try await redis.send("ZSCORE", "rdc:{default:0}:sessions", .string(dead.session)).string
                let now = try await redis.send("TIME").array?.first?.integer ?? 0
                #expect(Double(ends ?? "0")! / 1_000_000 > Double(now) + 3000)
                // forceRelease does not have to wait for that hour.
                #expect(try await one.mutex("d").forceRelease())
                let successor = try await waiting.value
                #expect(successor.fence > UInt64(granted[0])!)
                try await successor.release()
            }
        }
    }
}
