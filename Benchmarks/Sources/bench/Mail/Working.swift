import Foundation
import Hiredis
import QueueListen
import Synchronization

/// Measures one process that runs the messages of a mailbox as jobs, 64 at a time, beside a consumer of a stream's group.
enum Working {
    private static let concurrency = 64

    private static var configuration: WorkConfiguration {
        var configuration = WorkConfiguration()
        configuration.concurrency = concurrency
        return configuration
    }

    /// - Returns: Jobs per second.
    static func run(url: String, count: Int, prefix: String, placement: Placement) async throws -> Double {
        try await withBenchOffice(url: url, namespace: prefix) { redis, office in
            try await office.fill("jobs", with: count)
            let mailbox = try office.mailbox("jobs")
            let configuration = configuration
            return try await placement.run(redis) {
                let left = Mutex(count)
                let (ends, end) = AsyncStream.makeStream(of: Void.self)
                let start = monotonicNow()
                let work = Task {
                    try await mailbox.work(configuration) { _ in
                        if left.withLock({
                            $0 -= 1
                            return $0 == 0
                        }) {
                            end.finish()
                        }
                    }
                }
                for await _ in ends {}
                let rate = Double(count) / (Double(monotonicNow() - start) / 1e9)
                work.cancel()
                try await work.value
                return rate
            }
        }
    }

    /// The same client reads 64 entries of a stream as a consumer of a group, and acknowledges and deletes them.
    static func stream(url: String, count: Int, prefix: String, placement: Placement) async throws -> Double {
        try await withBenchOffice(url: url, namespace: prefix) { redis, _ in
            let key = RedisArgument.string(prefix + ":stream")
            let body = RedisArgument.string(String(repeating: "x", count: 256))
            for start in stride(from: 0, to: count, by: 500) {
                let commands = (start..<min(count, start + 500)).map { _ -> RedisCommand in
                    ["XADD", key, "*", "b", body]
                }
                _ = try await redis.pipeline(commands)
            }
            _ = try await redis.send("XGROUP", "CREATE", key, "workers", "0")
            return try await placement.run(redis) {
                let start = monotonicNow()
                var left = count
                var done: [RedisArgument] = []
                while left > 0 {
                    var commands: [RedisCommand] = []
                    if !done.isEmpty {
                        commands.append(RedisCommand(["XACK", key, "workers"] + done))
                        commands.append(RedisCommand(["XDEL", key] + done))
                    }
                    commands.append(
                        [
                            "XREADGROUP", "GROUP", "workers", "one", "COUNT", .integer(concurrency), "STREAMS", key,
                            ">",
                        ])
                    let replies = try await redis.pipeline(commands)
                    let entries = replies.last?.array?.first?.array?.last?.array ?? []
                    done = entries.compactMap { $0.array?.first?.bytes.map { .bytes($0) } }
                    if done.isEmpty { throw BenchError("the stream has ended too early") }
                    left -= done.count
                }
                _ = try await redis.send(RedisCommand(["XACK", key, "workers"] + done))
                return Double(count) / (Double(monotonicNow() - start) / 1e9)
            }
        }
    }
}
