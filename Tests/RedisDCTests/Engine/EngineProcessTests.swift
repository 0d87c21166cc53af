import Foundation
import Hiredis
import RedisDC
import RedisDCTesting
import TestSupport
import Testing

extension EngineTests {
    @Suite("In several processes")
    struct Processes {
        @Test("processes killed with -9 at random take nothing with them, and nobody enters a held mutex")
        func killed() async throws {
            // scripts/stress sets more.
            let kills = ProcessInfo.processInfo.environment["REDISDC_KILLS"].flatMap { Int($0) } ?? 40
            let seed =
                ProcessInfo.processInfo.environment["REDISDC_SEED"].flatMap { UInt64($0) } ?? .random(in: 0...999_999)
            var configuration = CoordinatorConfiguration()
            configuration.ttl = .seconds(2)
            try await withServer { server, redis, _ in
                try await withCoordinator(redis: redis, configuration: configuration) { looker in
                    var next = seed
                    func start() throws -> Child {
                        next += 1
                        return try Child("redisdc-worker", ["engine-mix", server.url, "-", "\(next)"])
                    }
                    var workers = try (0..<4).map { _ in try start() }
                    var generator = SystemRandomNumberGenerator()
                    for kill in 0..<kills {
                        let before = try await Self.progress(redis)
                        try await until("kill \(kill): they work (seed \(seed))") {
                            try await Self.progress(redis) > before + 20
                        }
                        let victim = Int.random(in: 0..<workers.count, using: &generator)
                        try await workers[victim].kill9()
                        workers[victim] = try start()
                        if kill % 10 == 0 { try await Audit(redis).check("seed \(seed)") }
                    }
                    _ = try await redis.send("SET", "stop", "1")
                    for worker in workers { _ = try await worker.result() }
                    try await until("the killed ones' sessions have ended") {
                        try await Audit(redis).sessions.count == 1
                    }
                    let audit = try await Audit(redis)
                    audit.check("seed \(seed)")
                    #expect(audit.claims.isEmpty && audit.answers.isEmpty)
                    let pool = try #require(audit.resources["pool"])
                    #expect(pool.free == 7)
                    let tokens = try #require(audit.resources["tokens"])
                    #expect(tokens.free == 5 + tokens.signalled - tokens.consumed)
                    #expect(tokens.consumed > kills && tokens.waiting == 0)
                    try await Self.checkLog(redis, seed: seed)
                    _ = looker
                }
            }
        }

        private static func progress(_ redis: RedisClient) async throws -> Int {
            try await redis.send("LLEN", "log").integer ?? 0
        }

        /// Fences grow from one entry to the next, and nobody who still holds it is in when another has entered.
        private static func checkLog(_ redis: RedisClient, seed: UInt64) async throws {
            let log = try await redis.send("LRANGE", "log", 0, -1).array?.compactMap(\.string) ?? []
            var last = 0
            for line in log {
                let fence = Int(line.split(separator: " ")[1])!
                if line.hasPrefix("in") {
                    #expect(fence > last, "\(line) after \(last), seed \(seed)")
                    last = fence
                } else {
                    #expect(fence == last, "\(line), but \(last) is in, seed \(seed)")
                }
            }
            #expect(log.count > 100)
        }

        @Test("a holder that is stopped beyond its TTL is told when it goes on, and its successor has a higher fence")
        func stopped() async throws {
            var configuration = CoordinatorConfiguration()
            configuration.ttl = .seconds(2)
            try await withServer { server, redis, _ in
                try await withCoordinator(redis: redis, configuration: configuration) { coordinator in
                    let holder = try Child("redisdc-worker", ["engine-hold", server.url, "m"])
                    try await until("it holds") { try await redis.send("LLEN", "log").integer == 1 }
                    let first = try await redis.send("LINDEX", "log", 0).string
                    kill(holder.processID, SIGSTOP)
                    let lease = try await coordinator.mutex("m").lock(timeout: .seconds(30))
                    #expect(first == "in \(lease.fence)" ? false : true)
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

        @Test("four processes count under a mutex and lose nothing")
        func turns() async throws {
            try await withServer { server, redis, _ in
                let workers = try (0..<4).map { _ in
                    try Child("redisdc-worker", ["engine-turns", server.url, "m", "250"])
                }
                for worker in workers { _ = try await worker.result() }
                #expect(try await redis.send("GET", "count").string == "1000")
            }
        }

        @Test("a waiter that is killed with -9 is passed over when its turn comes")
        func killedWaiter() async throws {
            try await withServer { server, redis, _ in
                try await withCoordinator(redis: redis) { coordinator in
                    let lease = try await coordinator.mutex("m").lock()
                    let victim = try Child("redisdc-worker", ["engine-hold", server.url, "m"])
                    try await until("the victim waits") { try await coordinator.inspect("m")?.waiterCount == 1 }
                    let waiting = Task { try await coordinator.mutex("m").lock() }
                    try await until("both wait") { try await coordinator.inspect("m")?.waiterCount == 2 }
                    try await victim.kill9()
                    let session = try await coordinator.inspect("m")?.waiters.first?.session
                    try await until("its session has ended") { try await !Audit(redis).sessions.contains(session!) }
                    try await lease.release()
                    try await waiting.value.release()
                }
            }
        }
    }
}
