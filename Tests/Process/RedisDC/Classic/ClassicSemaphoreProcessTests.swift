import Foundation
import Hiredis
import RedisDC
import RedisDCTesting
import TestRandom
import TestSupport
import Testing

extension ClassicSemaphoreTests {
    @Suite("In several processes")
    struct Processes {
        @Test("100,000 operations in 4 processes with random cancels and timeouts conserve the permits")
        func conservation() async throws {
            try await withServer { server, redis, _ in
                let semaphore = try ClassicSemaphore("s", redis: redis)
                try await semaphore.create(permits: 10)
                let seed = testSeed()
                let workers = try (0..<4).map {
                    try Child("redisdc-worker", ["mix", server.url, "s", "\(seed + UInt64($0))", "25000"])
                }
                var sums = [0, 0, 0, 0]
                for worker in workers {
                    let counts = try await worker.result().split(separator: " ").compactMap { Int($0) }
                    try #require(counts.count == 4, "seed \(seed)")
                    for index in 0..<4 { sums[index] += counts[index] }
                }
                let (signalled, taken, cancelled, timedOut) = (sums[0], sums[1], sums[2], sums[3])
                #expect(try await semaphore.value == 10 + signalled - taken, "seed \(seed)")
                #expect(taken > 10_000 && cancelled > 100 && timedOut > 0, "seed \(seed): \(sums)")
                #expect(try await redis.blockedClients() == 0)
                let keys = try await redis.send("KEYS", "rdc:sem:*").array?.compactMap(\.string) ?? []
                #expect(keys.allSatisfy { $0 == "rdc:sem:s" })
            }
        }

        @Test("waiters of several processes are served in the order in which they came")
        func fifo() async throws {
            try await withServer { server, redis, _ in
                let semaphore = try ClassicSemaphore("s", redis: redis)
                var workers: [Child] = []
                for number in 0..<12 {
                    workers.append(try Child("redisdc-worker", ["wait", server.url, "s", "order", "\(number)"]))
                    try await until("process \(number) waits") { try await redis.blockedClients() == number + 1 }
                }
                for number in 0..<12 {
                    try await semaphore.signal()
                    try await until("one more was served") {
                        try await redis.send("LLEN", "order").integer == number + 1
                    }
                }
                for worker in workers { _ = try await worker.result() }
                let order = try await redis.send("LRANGE", "order", 0, -1).array?.compactMap(\.integer)
                #expect(order == Array(0..<12))
            }
        }

        @Test("50 processes that create a semaphore at once create it once")
        func creation() async throws {
            try await withServer { server, redis, _ in
                let workers = try (0..<50).map { _ in try Child("redisdc-worker", ["create", server.url, "s", "7"]) }
                var created = 0
                for worker in workers where try await worker.result() == "true" { created += 1 }
                #expect(created == 1)
                #expect(try await ClassicSemaphore("s", redis: redis).value == 7)
            }
        }

        @Test("a waiter that is killed with -9 takes no permit with it")
        func killedWaiter() async throws {
            try await withServer { server, redis, _ in
                let semaphore = try ClassicSemaphore("s", redis: redis)
                let victim = try Child("redisdc-worker", ["wait", server.url, "s", "log", "victim"])
                try await until("the victim waits") { try await redis.blockedClients() == 1 }
                let heir = try Child("redisdc-worker", ["wait", server.url, "s", "log", "heir"])
                try await until("the heir waits") { try await redis.blockedClients() == 2 }
                try await victim.kill9()
                try await until("the server has noticed") { try await redis.blockedClients() == 1 }
                try await semaphore.signal()
                _ = try await heir.result()
                #expect(try await redis.send("LRANGE", "log", 0, -1).array?.map(\.string) == ["heir"])
                #expect(try await semaphore.value == 0)
            }
        }
    }
}
