import Foundation
import Hiredis
import QueueListen

/// Measures the memory of messages in Redis.
enum MailMemory {
    /// - Returns: Bytes per message, with `count` messages in one mailbox.
    static func run(url: String, count: Int, prefix: String) async throws -> Double {
        try await withBenchOffice(url: url, namespace: prefix) { redis, office in
            try await measure(redis, count) { try await office.fill("full", with: count) }
        }
    }

    /// - Returns: Bytes per element, with `count` elements of the size of a message's body in one list.
    static func list(url: String, count: Int, prefix: String) async throws -> Double {
        try await withRedisClient(url: url) { redis in
            try await measure(redis, count) {
                let element = RedisArgument.bytes(Message.bench.body)
                for start in stride(from: 0, to: count, by: 1000) {
                    let elements = Array(repeating: element, count: min(1000, count - start))
                    _ = try await redis.send(RedisCommand(["RPUSH", .string(prefix)] + elements))
                }
            }
        }
    }

    private static func measure(_ redis: RedisClient, _ count: Int, _ fill: () async throws -> Void) async throws
        -> Double
    {
        let before = try await usedMemory(redis)
        try await fill()
        return Double(try await usedMemory(redis) - before) / Double(count)
    }

    private static func usedMemory(_ redis: RedisClient) async throws -> Int {
        let info = try await redis.send("INFO", "memory").string ?? ""
        let line = info.split(separator: "\r\n").first { $0.hasPrefix("used_memory:") }
        guard let bytes = line.flatMap({ Int($0.dropFirst("used_memory:".count)) }) else {
            throw BenchError("INFO memory does not contain used_memory")
        }
        return bytes
    }
}
