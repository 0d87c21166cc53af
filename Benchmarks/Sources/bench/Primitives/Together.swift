import RedisDC

/// One of several processes that do the same and begin together, at a barrier.
enum Together {
    static let parties = 8

    /// Rounds of a barrier in a second.
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

    /// Looks and changes in a second, of four tasks: each takes a millisecond, and one of twenty is a change. With `isShared`
    /// those who look do so together, else one after the other.
    static func looks(url: String, count: Int, prefix: String, placement: Placement, isShared: Bool) async throws
        -> Double
    {
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
                                if !isShared {
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
                // Until all have done theirs, they are in one another's way.
                try await barrier.arriveAndWait()
                return rate
            }
        }
    }

    private static func moment() async throws { try await Task.sleep(for: .milliseconds(1)) }
}
