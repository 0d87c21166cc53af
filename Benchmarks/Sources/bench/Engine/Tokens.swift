import RedisDC

/// Measures tokens that two processes hand back and forth, each through two semaphores of the engine.
struct Tokens {
    var count: Int
    var partitions: Int

    /// - Parameter handoffs: The hand-offs of all tokens together.
    /// - Returns: Hand-offs per second of all tokens together.
    func run(url: String, handoffs: Int, prefix: String, placement: Placement) async throws -> Double {
        let rounds = handoffs / 2 / count
        return try await withBenchCoordinator(
            url: url, namespace: prefix, configuration: .bench(partitions: partitions)
        ) { redis, coordinator in
            let semaphores = try semaphores(coordinator)
            return try await placement.run(redis) {
                try await pass(semaphores, warmUp(rounds))
                let start = monotonicNow()
                try await pass(semaphores, rounds)
                return Double(2 * rounds * semaphores.count) / (Double(monotonicNow() - start) / 1e9)
            }
        }
    }

    /// The other process.
    func peer(url: String, handoffs: Int, prefix: String, placement: Placement) async throws {
        let rounds = handoffs / 2 / count
        try await withBenchCoordinator(url: url, namespace: prefix, configuration: .bench(partitions: partitions)) {
            redis, coordinator in
            let semaphores = try semaphores(coordinator)
            try await placement.run(redis) {
                try await Self.concurrently(semaphores) { there, back in
                    for _ in 0..<(warmUp(rounds) + rounds) {
                        try await there.wait()
                        try await back.signal()
                    }
                }
            }
        }
    }

    private func warmUp(_ rounds: Int) -> Int { rounds / 10 + 1 }

    private func semaphores(_ coordinator: Coordinator) throws -> [(there: Semaphore, back: Semaphore)] {
        try (0..<count).map { token in
            (
                try coordinator.semaphore("there-\(token)", permits: 0),
                try coordinator.semaphore("back-\(token)", permits: 0)
            )
        }
    }

    private func pass(_ semaphores: [(there: Semaphore, back: Semaphore)], _ rounds: Int) async throws {
        try await Self.concurrently(semaphores) { there, back in
            for _ in 0..<rounds {
                try await there.signal()
                try await back.wait()
            }
        }
    }

    private static func concurrently(
        _ semaphores: [(there: Semaphore, back: Semaphore)],
        _ body: @Sendable @escaping (Semaphore, Semaphore) async throws -> Void
    ) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (there, back) in semaphores { group.addTask { try await body(there, back) } }
            try await group.waitForAll()
        }
    }
}
