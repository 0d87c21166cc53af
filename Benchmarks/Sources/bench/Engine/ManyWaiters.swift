import Foundation
import Hiredis
import RedisDC

/// Many tasks of one process that each wait on a semaphore of their own.
///
/// Prints `ready` with a session, begins to wait when it is told to, prints `waiting` when Redis has all of them in its
/// queues, and at the end when the last one was awake, by the clock that all processes share.
enum ManyWaiters {
    static func run(url: String, count: Int, prefix: String, placement: Placement) async throws -> Int64 {
        try await withBenchCoordinator(url: url, namespace: prefix) { redis, coordinator in
            let first = try coordinator.semaphore("first", permits: 1)
            try await first.wait()
            say("ready")
            _ = Orders.next()
            Orders.endWithParent()
            return try await placement.run(redis) {
                try await withThrowingDiscardingTaskGroup { group in
                    for number in 0..<count {
                        group.addTask { try await coordinator.semaphore("w\(number)", permits: 0).wait() }
                    }
                    try await untilQueued(redis, count, prefix)
                    say("waiting")
                }
                return monotonicNow()
            }
        }
    }

    /// Each waiter has two lines in the engine's index: one in its session's list, one in the queue.
    private static func untilQueued(_ redis: RedisClient, _ count: Int, _ namespace: String) async throws {
        while try await redis.send("ZCARD", .string("rdc:{\(namespace):0}:index")).integer ?? 0 < 2 * count {
            try await Task.sleep(for: .milliseconds(20))
        }
        // The answers of the last ones may still be under way.
        try await Task.sleep(for: .milliseconds(200))
    }

    private static func say(_ word: String) {
        FileHandle.standardOutput.write(Data("\(word)\n".utf8))
    }
}
