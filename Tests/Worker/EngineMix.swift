import Foundation
import Hiredis
import RedisDC
import TestRandom

/// A random mix of the engine's operations, by concurrent tasks, until the key `stop` exists.
///
/// Tasks record in Redis when they enter and leave the mutex, so that the test can check the order.
struct EngineMix {
    let coordinator: Coordinator
    let redis: RedisClient
    let seed: UInt64

    private static let tasks = 6

    func run() async throws {
        printSeed(seed, of: "EngineMix")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<Self.tasks {
                group.addTask {
                    var generator = SplitMix(seed: seed &* 31 &+ UInt64(number))
                    while try await redis.send("EXISTS", "stop").integer == 0 {
                        do {
                            try await step(&generator)
                        } catch let error as RedisDCError where Self.isExpected(error) {}
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    /// Returns whether killed processes, or a session lost on a busy machine, explain an error.
    private static func isExpected(_ error: RedisDCError) -> Bool {
        [.timedOut, .cancelled, .lost].contains(error.code) || error.mayHaveRun
    }

    private func step(_ generator: inout SplitMix) async throws {
        let tokens = try coordinator.semaphore("tokens", permits: 5)
        let pool = try coordinator.semaphore("pool", permits: 7)
        let pause = Duration.microseconds(Int.random(in: 0...3000, using: &generator))
        let count = Int.random(in: 1...3, using: &generator)
        switch Int.random(in: 0..<10, using: &generator) {
        case 0..<3: try await tokens.signal(count)
        case 3..<5: try await tokens.wait(count, timeout: .milliseconds(20))
        case 5:
            let waiting = Task { try await tokens.wait(count) }
            try await Task.sleep(for: pause)
            waiting.cancel()
            try await waiting.value
        case 6..<8:
            try await pool.withPermits(count, timeout: .milliseconds(100)) { _ in try await Task.sleep(for: pause) }
        default:
            // Processes that keep the mutex for a while, and strict ones.
            let locality: Locality = seed % 2 == 0 ? .strict : .cohort(limit: 3, linger: .milliseconds(2))
            let door = try coordinator.mutex("door", locality: locality)
            try await door.withLock(timeout: .milliseconds(500)) { [redis] lease in
                let fence = String(lease.fence)
                _ = try await redis.send("RPUSH", "log", .string("in \(fence)"))
                try await Task.sleep(for: pause)
                if lease.isHeld { _ = try await redis.send("RPUSH", "log", .string("out \(fence)")) }
            }
        }
    }
}
