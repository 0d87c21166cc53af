import RedisDC

/// Measures two processes that hand a token back and forth through two semaphores of the engine.
enum EngineHandoff {
    static func run(url: String, rounds: Int, prefix: String, placement: Placement) async throws -> Figures {
        try await withBenchCoordinator(url: url, namespace: prefix) { redis, coordinator in
            let there = try coordinator.semaphore("there", permits: 0)
            let back = try coordinator.semaphore("back", permits: 0)
            return try await placement.run(redis) {
                var histogram = Figures.makeHistogram()
                for round in -Handoff.warmUp..<rounds {
                    let start = monotonicNow()
                    try await there.signal()
                    try await back.wait()
                    if round >= 0 { _ = histogram.record(UInt64((monotonicNow() - start) / 2)) }
                }
                return Figures(histogram)
            }
        }
    }

    static func peer(url: String, rounds: Int, prefix: String, placement: Placement) async throws {
        try await withBenchCoordinator(url: url, namespace: prefix) { redis, coordinator in
            let there = try coordinator.semaphore("there", permits: 0)
            let back = try coordinator.semaphore("back", permits: 0)
            try await placement.run(redis) {
                for _ in -Handoff.warmUp..<rounds {
                    try await there.wait()
                    try await back.signal()
                }
            }
        }
    }
}
