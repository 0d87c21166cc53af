import Foundation
import Hiredis
import RedisDC

/// Measures many tasks of one process that each wait on a semaphore of their own.
///
/// Prints `ready` when it has a session, starts to wait after the next line from its parent, and prints `waiting` when all
/// waiters are in Redis's queues. At the end it prints when the last one was awake, by the clock that all processes share.
enum ManyWaiters {
    static func run(url: String, count: Int, prefix: String, placement: Placement) async throws -> Int64 {
        try await withBenchCoordinator(url: url, namespace: prefix) { redis, coordinator in
            let first = try coordinator.semaphore("first", permits: 1)
            try await first.wait()
            printLine("ready")
            _ = ParentInput.next()
            ParentInput.exitWithParent()
            return try await placement.run(redis) {
                try await withThrowingDiscardingTaskGroup { group in
                    for number in 0..<count {
                        group.addTask { try await coordinator.semaphore("w\(number)", permits: 0).wait() }
                    }
                    try await untilQueued(redis, count, prefix)
                    printLine("waiting")
                }
                return monotonicNow()
            }
        }
    }

    /// Waits until all waiters are queued. The engine's index has one entry for each.
    private static func untilQueued(_ redis: RedisClient, _ count: Int, _ namespace: String) async throws {
        while try await redis.send("ZCARD", .string("rdc:{\(namespace):0}:index")).integer ?? 0 < count {
            try await Task.sleep(for: .milliseconds(20))
        }
        // The last answers may still be in flight.
        try await Task.sleep(for: .milliseconds(200))
    }

    private static func printLine(_ word: String) {
        FileHandle.standardOutput.write(Data("\(word)\n".utf8))
    }
}
