import RedisDC

/// One of several processes that do the same work and start together at a barrier.
enum ParallelProcesses {
    static let parties = 8

    /// - Returns: Rounds of a barrier per second.
    static func rounds(url: String, count: Int, prefix: String, placement: Placement) async throws -> Double {
        try await withBenchCoordinator(url: url, namespace: prefix) { redis, coordinator in
            let barrier = try coordinator.barrier("round", parties: parties)
            return try await placement.run(redis) {
                for _ in 0..<20 { try await barrier.arriveAndWait() }
                let start = monotonicNow()
                for _ in 0..<count { try await barrier.arriveAndWait() }
                return Double(count) * 1e9 / Double(monotonicNow() - start)
            }
        }
    }

    /// Runs reads and writes in four tasks. Each takes one millisecond, and one of twenty is a write. With
    /// `usesReadWriteLock` the reads share a lock; otherwise all operations exclude one another by a mutex.
    ///
    /// - Returns: Operations per second of this process.
    static func operations(
        url: String, count: Int, prefix: String, placement: Placement, usesReadWriteLock: Bool
    ) async throws -> Double {
        try await withBenchCoordinator(url: url, namespace: prefix) { redis, coordinator in
            let barrier = try coordinator.barrier("begin", parties: parties)
            let lock = try coordinator.readWriteLock("catalogue")
            let mutex = try coordinator.mutex("alone")
            return try await placement.run(redis) {
                try await barrier.arriveAndWait()
                let start = monotonicNow()
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 0..<4 {
                        group.addTask {
                            for number in 0..<count / 4 {
                                if !usesReadWriteLock {
                                    try await mutex.withLock { _ in try await moment() }
                                } else if number % 20 == 19 {
                                    try await lock.withWriteLock { _ in try await moment() }
                                } else {
                                    try await lock.withReadLock { _ in try await moment() }
                                }
                            }
                        }
                    }
                    try await group.waitForAll()
                }
                let rate = Double(count) * 1e9 / Double(monotonicNow() - start)
                // All processes contend until the last one has finished.
                try await barrier.arriveAndWait()
                return rate
            }
        }
    }

    private static func moment() async throws { try await Task.sleep(for: .milliseconds(1)) }
}
