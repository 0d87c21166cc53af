import Hiredis

/// Measures many tasks that each LPUSH one element after another over one connection.
enum Pushes {
    /// - Returns: Pushes per second.
    static func run(url: String, tasks: Int, each: Int, prefix: String, placement: Placement) async throws -> Double {
        try await withRedisClient(url: url) { redis in
            let key = "\(prefix):list"
            _ = try await redis.send("DEL", .string(key))
            let start = monotonicNow()
            try await placement.run(redis) {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 0..<tasks {
                        group.addTask {
                            for _ in 0..<each { _ = try await redis.send("LPUSH", .string(key), "xxx") }
                        }
                    }
                    try await group.waitForAll()
                }
            }
            let seconds = Double(monotonicNow() - start) / 1e9
            _ = try await redis.send("DEL", .string(key))
            return Double(tasks * each) / seconds
        }
    }
}
