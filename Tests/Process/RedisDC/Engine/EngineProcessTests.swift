import Foundation
import Hiredis
import RedisDC
import RedisDCTesting
import TestRandom
import TestSupport
import Testing

@testable import RedisDCTestSupport

extension EngineTests {
    @Suite("Several processes", .serialized)
    struct Processes {
        @Test("processes killed at random with SIGKILL leave no claims, and a held mutex has one holder")
        func killed() async throws {
            // scripts/stress sets a larger number.
            let kills = ProcessInfo.processInfo.environment["REDISDC_KILLS"].flatMap { Int($0) } ?? 40
            let seed = testSeed()
            var configuration = CoordinatorConfiguration()
            configuration.ttl = .seconds(2)
            try await withServer { server, redis, _ in
                try await withCoordinator(redis: redis, configuration: configuration) { _ in
                    // This coordinator ends the claims of the killed sessions.
                    var next = seed
                    func start() throws -> Child {
                        next += 1
                        return try Child("redisdc-worker", ["engine-mix", server.url, "-", "\(next)"])
                    }
                    var workers = try (0..<4).map { _ in try start() }
                    var generator = SplitMix(seed: seed)
                    for kill in 0..<kills {
                        let before = try await Self.progress(redis)
                        try await until("the workers make progress before kill \(kill) (seed \(seed))") {
                            try await Self.progress(redis) > before + 20
                        }
                        let victim = Int.random(in: 0..<workers.count, using: &generator)
                        try await workers[victim].kill9()
                        workers[victim] = try start()
                        if kill % 10 == 0 { try await Audit(redis).check("seed \(seed)") }
                    }
                    _ = try await redis.send("SET", "stop", "1")
                    for worker in workers { _ = try await worker.result() }
                    try await until("the sessions of the killed processes have ended") {
                        try await Audit(redis).sessions.count == 1
                    }
                    let audit = try await Audit(redis)
                    audit.check("seed \(seed)")
                    #expect(audit.claims.isEmpty)
                    let pool = try #require(audit.resources["pool"])
                    #expect(pool.free == 7)
                    let tokens = try #require(audit.resources["tokens"])
                    #expect(tokens.free == 5 + tokens.signalled - tokens.consumed)
                    #expect(tokens.consumed > kills && tokens.waiting == 0)
                    try await Self.checkLog(redis, seed: seed)
                }
            }
        }

        private static func progress(_ redis: RedisClient) async throws -> Int {
            try await redis.send("LLEN", "log").integer ?? 0
        }

        /// Checks that fences grow from one entry to the next, and that each holder leaves before
        /// the next one enters.
        private static func checkLog(_ redis: RedisClient, seed: UInt64) async throws {
            let log = try await redis.send("LRANGE", "log", 0, -1).array?.compactMap(\.string) ?? []
            tally(.operation, log.count / 2)
            tally(.promise, log.count)
            var last = 0
            for line in log {
                let fence = Int(line.split(separator: " ")[1])!
                if line.hasPrefix("in") {
                    #expect(fence > last, "\(line) after \(last), seed \(seed)")
                    last = fence
                } else {
                    #expect(fence == last, "\(line), but \(last) is inside, seed \(seed)")
                }
            }
            #expect(log.count > 100)
        }

        @Test("a holder stopped beyond its TTL loses its lease, and its successor has a higher fence")
        func stopped() async throws {
            try await withServer { server, redis, _ in
                try await withCoordinator(redis: redis, configuration: mediumTTL) { coordinator in
                    let holder = try Child("redisdc-worker", ["engine-hold", server.url, "m"])
                    try await until("the worker holds the mutex") { try await redis.send("LLEN", "log").integer == 1 }
                    let first = try await redis.send("LINDEX", "log", 0).string
                    kill(holder.processID, SIGSTOP)
                    let lease = try await coordinator.mutex("m").lock(timeout: patience)
                    #expect(first != "in \(lease.fence)")
                    #expect(Int(first!.dropFirst(3))! < Int(lease.fence))
                    kill(holder.processID, SIGCONT)
                    _ = try await holder.result()
                    let log = try await redis.send("LRANGE", "log", 1, -1).array?.map(\.string)
                    #expect(log == ["cancelled false", "lost"])
                    #expect(lease.isHeld)
                    try await lease.release()
                }
            }
        }

        @Test("four processes that count under a mutex lose no increment")
        func turns() async throws {
            try await withServer { server, redis, _ in
                let workers = try (0..<4).map { _ in
                    try Child("redisdc-worker", ["engine-turns", server.url, "m", "250"])
                }
                for worker in workers { _ = try await worker.result() }
                #expect(try await redis.send("GET", "count").string == "1000")
            }
        }

        @Test("a waiter killed with SIGKILL is passed over")
        func killedWaiter() async throws {
            try await withServer { server, redis, _ in
                try await withCoordinator(redis: redis, configuration: longTTL) { coordinator in
                    let lease = try await coordinator.mutex("m").lock()
                    let victim = try Child("redisdc-worker", ["engine-hold", server.url, "m"])
                    try await until("the victim is queued") { try await coordinator.inspect("m")?.waiterCount == 1 }
                    let waiting = Task { try await coordinator.mutex("m").lock() }
                    try await until("both waiters are queued") { try await coordinator.inspect("m")?.waiterCount == 2 }
                    try await victim.kill9()
                    let session = try await coordinator.inspect("m")?.waiters.first?.session
                    try await until("the session has ended") { try await !Audit(redis).sessions.contains(session!) }
                    try await lease.release()
                    try await waiting.value.release()
                }
            }
        }
    }
}
