import RedisDC

/// Measures tasks that each lock and unlock a mutex of their own repeatedly.
enum LockPairs {
    /// - Returns: Pairs per second of all tasks together.
    static func run(
        url: String, tasks: Int, each: Int, prefix: String, placement: Placement, partitions: Int = 1
    ) async throws -> Double {
        let configuration = CoordinatorConfiguration.bench(partitions: partitions)
        return try await withBenchCoordinator(url: url, namespace: prefix, configuration: configuration) {
            redis, coordinator in
            let mutexes = try (0..<tasks).map { try coordinator.mutex("mutex-\($0)") }
            return try await placement.run(redis) {
                // Starts the session and warms the caches.
                try await lockAll(mutexes, each: each / 10 + 1)
                let start = monotonicNow()
                try await lockAll(mutexes, each: each)
                return Double(tasks * each) / (Double(monotonicNow() - start) / 1e9)
            }
        }
    }

    private static func lockAll(_ mutexes: [DistributedMutex], each: Int) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for mutex in mutexes {
                group.addTask {
                    for _ in 0..<each { try await mutex.withLock { _ in } }
                }
            }
            try await group.waitForAll()
        }
    }
}
