// What runs in the measured processes. Each prints one line of JSON.
import Foundation
import Hiredis
import Histogram
import RedisDC

/// Where the measured task lives.
enum Placement: String {
    /// On the event loop of the client's connections.
    case pinned
    /// On Swift's global executor.
    case global

    func run<Result: Sendable>(
        _ redis: RedisClient, _ body: @escaping @Sendable () async throws -> Result
    ) async throws -> Result {
        switch self {
        case .pinned: try await withTaskExecutorPreference(redis.executor) { try await body() }
        case .global: try await Task.detached { try await body() }.value
        }
    }
}

enum Worker {
    private static let warmUp = 500

    /// Side A of a hand-off: signals B, waits for its answer.
    static func handoff(url: String, rounds: Int, prefix: String, placement: Placement) async throws -> Figures {
        try await withRedisClient(url: url) { redis in
            let there = try ClassicSemaphore("\(prefix):there", redis: redis)
            let back = try ClassicSemaphore("\(prefix):back", redis: redis)
            let figures = try await placement.run(redis) {
                var figures = Figures()
                for round in -warmUp..<rounds {
                    let start = ContinuousClock.now
                    try await there.signal()
                    try await back.wait()
                    if round >= 0 { figures.record(nanoseconds: (ContinuousClock.now - start).nanoseconds / 2) }
                }
                return figures
            }
            try await there.destroy()
            try await back.destroy()
            return figures
        }
    }

    static func handoffPeer(url: String, rounds: Int, prefix: String, placement: Placement) async throws {
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

    /// So many tasks that each LPUSH one element after another, over one connection.
    static func pushes(url: String, tasks: Int, each: Int, placement: Placement) async throws -> Double {
        try await withRedisClient(url: url) { redis in
            _ = try await redis.send("DEL", "rdc:bench:list")
            let start = ContinuousClock.now
            try await placement.run(redis) {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 0..<tasks {
                        group.addTask {
                            for _ in 0..<each { _ = try await redis.send("LPUSH", "rdc:bench:list", "xxx") }
                        }
                    }
                    try await group.waitForAll()
                }
            }
            let seconds = Double((ContinuousClock.now - start).nanoseconds) / 1e9
            _ = try await redis.send("DEL", "rdc:bench:list")
            return Double(tasks * each) / seconds
        }
    }
}

struct Figures: Sendable {
    private var histogram = Histogram<UInt32>(numberOfSignificantValueDigits: .three)
    private var total: Int64 = 0

    mutating func record(nanoseconds: Int64) {
        total += nanoseconds
        _ = histogram.record(UInt64(max(0, nanoseconds)))
    }

    var json: String {
        let count = histogram.totalCount
        func micros(_ percentile: Double) -> String {
            String(format: "%.2f", Double(histogram.valueAtPercentile(percentile)) / 1000)
        }
        let mean = String(format: "%.2f", Double(total) / 1000 / Double(max(1, count)))
        return "{\"count\":\(count),\"mean_us\":\(mean),\"p50_us\":\(micros(50)),\"p99_us\":\(micros(99))}"
    }
}

extension Duration {
    var nanoseconds: Int64 {
        let (seconds, attoseconds) = components
        return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
    }
}
