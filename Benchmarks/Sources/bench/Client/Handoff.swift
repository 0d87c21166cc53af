import Hiredis
import RedisDC

/// Measures two processes that hand a token back and forth through two classic semaphores.
enum Handoff {
    static let warmUp = 1000

    static func run(url: String, rounds: Int, prefix: String, placement: Placement) async throws -> Figures {
        try await withRedisClient(url: url) { redis in
            let there = try ClassicSemaphore("\(prefix):there", redis: redis)
            let back = try ClassicSemaphore("\(prefix):back", redis: redis)
            return try await placement.run(redis) {
                var histogram = Figures.makeHistogram()
                for round in -warmUp..<rounds {
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
        try await withRedisClient(url: url) { redis in
            let there = try ClassicSemaphore("\(prefix):there", redis: redis)
            let back = try ClassicSemaphore("\(prefix):back", redis: redis)
            try await placement.run(redis) {
                for _ in -warmUp..<rounds {
                    try await there.wait()
                    try await back.signal()
                }
            }
        }
    }
}
