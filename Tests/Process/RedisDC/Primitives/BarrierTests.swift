import Foundation
import Hiredis
import RedisDC
import RedisDCTesting
import TestRandom
import TestSupport
import Testing

@testable import RedisDCTestSupport

extension PrimitiveTests {
    @Suite("Barrier", .serialized)
    struct BarrierTests {
        @Test("a dead party does not count: the barrier opens only for live sessions")
        func death() async throws {
            try await withNodes { node, server, redis in
                let victim = try Child("redisdc-worker", ["engine-part", server.url, "b", "barrier", "2"])
                try await until("it waits") { try await node.inspect("b")?.waiterCount == 1 }
                try await victim.kill9()
                let session = try await node.inspect("b")?.waiters.first?.session
                try await until("its session is over") {
                    let ends = try await redis.send("ZSCORE", "rdc:{default:0}:sessions", .string(session!)).string
                    let time = try await redis.send("TIME").array?.compactMap(\.integer) ?? []
                    return Double(ends ?? "0")! < Double(time[0]) * 1e6 + Double(time[1])
                }
                let barrier = try node.barrier("b", parties: 2)
                // The dead party is still in the queue, or has been removed: in neither case may this one pass alone.
                #expect(
                    await errorOf { try await barrier.arriveAndWait(timeout: .milliseconds(100)) }?.code == .timedOut)
                async let first = barrier.arriveAndWait(timeout: .seconds(60))
                async let second = barrier.arriveAndWait(timeout: .seconds(60))
                #expect(try await Set([first.index, second.index]) == [0, 1])
            }
        }

        @Test("a dead party breaks a barrier that was made so")
        func deathBreaks() async throws {
            try await withNodes { node, server, _ in
                let victim = try Child("redisdc-worker", ["engine-part", server.url, "b", "breaking-barrier", "3"])
                try await until("it waits") { try await node.inspect("b")?.waiterCount == 1 }
                let barrier = try node.barrier("b", parties: 3, failure: .breaks)
                let waiting = Task { await errorOf { try await barrier.arriveAndWait(timeout: .seconds(60)) } }
                try await until("both wait") { try await node.inspect("b")?.waiterCount == 2 }
                try await victim.kill9()
                #expect(await waiting.value?.code == .broken)
            }
        }

        @Test("a party that dies after the barrier opened delays no other")
        func deathAfterwards() async throws {
            try await withNodes { node, server, redis in
                let victim = try Child("redisdc-worker", ["engine-part", server.url, "b", "barrier", "2"])
                let barrier = try node.barrier("b", parties: 2)
                try await barrier.arriveAndWait(timeout: .seconds(60))
                try await victim.kill9()
                async let first = barrier.arriveAndWait(timeout: .seconds(60))
                async let second = barrier.arriveAndWait(timeout: .seconds(60))
                #expect(try await Set([first.generation, second.generation]) == [1])
                try await until("the dead one is swept") { try await Audit(redis).sessions.count == 1 }
                try await Audit(redis).check()
            }
        }
    }

    @Suite("Phaser", .serialized)
    struct PhaserTests {
        @Test("the phases go on while parties of several processes register and leave and one process is killed")
        func death() async throws {
            try await withNodes { node, server, redis in
                let victim = try Child("redisdc-worker", ["engine-part", server.url, "p", "phaser"])
                try await until("it is registered") { try await node.inspect("p")?.holderCount == 1 }
                let workers = try (0..<3).map { _ in
                    try Child("redisdc-worker", ["engine-part", server.url, "p", "phases", "50"])
                }
                try await until("all wait for one") { try await node.inspect("p")?.waiterCount == 3 }
                #expect(try await redis.send("LLEN", "log").integer == 0)
                try await victim.kill9()
                for worker in workers { _ = try await worker.result() }
                let log = try await redis.send("LRANGE", "log", 0, -1).array?.compactMap { $0.integer } ?? []
                #expect(log.count == 150)
                // No party is two phases ahead of another.
                for (position, phase) in log.enumerated() {
                    #expect(log.prefix(position).allSatisfy { $0 <= phase + 1 })
                }
            }
        }
    }
}
