import Foundation
import Hiredis
import QueueListen

/// Measures the server's cost of a send and a listen beside many messages or many mailboxes: the time that the server
/// reports for scripts, as the median over short stretches of rounds.
enum MailCrowd {
    // swift-format-ignore: AlwaysUseLowerCamelCase
    struct Cost: Codable, Sendable {
        var send_us: Double
        var listen_us: Double
    }

    /// The number of sends in a stretch. The same number of listens follows and restores the mailbox.
    private static let stretch = 10

    /// - Parameter kind: `messages` in the mailbox, or other `mailboxes` with one message each.
    static func run(url: String, kind: String, count: Int, rounds: Int, prefix: String) async throws -> Cost {
        try await withBenchOffice(url: url, namespace: prefix) { redis, office in
            switch kind {
            case "messages": try await office.fill("measured", with: count)
            case "mailboxes":
                try await office.fill("measured", with: 10)
                for start in stride(from: 0, to: count, by: 100) {
                    try await office.send([.bench], to: (start..<min(count, start + 100)).map { "other \($0)" })
                }
            default: throw BenchError("a crowd consists of messages or mailboxes, not of \(kind)")
            }
            let mailbox = try office.mailbox("measured")
            var cursor = try await mailbox.listen(limit: 1).cursor
            var (sends, listens): ([Double], [Double]) = ([], [])
            // The first ten stretches warm the caches and are not counted.
            for round in -10..<rounds / stretch {
                let start = try await scriptTime(redis)
                for _ in 0..<stretch { try await office.send(.bench, to: "measured") }
                let middle = try await scriptTime(redis)
                for _ in 0..<stretch {
                    let delivery = try await mailbox.listen(after: cursor, limit: 1, timeout: .zero)
                    guard delivery.messages.count == 1 else { throw BenchError("expected one message") }
                    cursor = delivery.cursor
                }
                let end = try await scriptTime(redis)
                if round < 0 { continue }
                sends.append((middle - start) / Double(stretch))
                listens.append((end - middle) / Double(stretch))
            }
            return Cost(send_us: median(sends), listen_us: median(listens))
        }
    }

    private static func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }

    /// Returns the time that the server reports for scripts, in microseconds.
    private static func scriptTime(_ redis: RedisClient) async throws -> Double {
        let info = try await redis.send("INFO", "commandstats").string ?? ""
        let line = info.split(separator: "\r\n").first { $0.hasPrefix("cmdstat_evalsha:") } ?? ""
        let figure = line.split(separator: ",").first { $0.hasPrefix("usec=") }
        return figure.flatMap { Double($0.dropFirst("usec=".count)) } ?? 0
    }
}
