import Foundation
import QueueListen

/// Measures how late messages of scheduled sends are at a reader in another process.
enum Lateness {
    /// Schedules sends that are due in the next seconds, at random times.
    static func run(url: String, count: Int, prefix: String, placement: Placement) async throws {
        try await withBenchOffice(url: url, namespace: prefix) { redis, office in
            try await placement.run(redis) {
                let start = Date.now.timeIntervalSince1970 + 2
                for _ in 0..<count {
                    let due = ((start + .random(in: 0..<5)) * 1000).rounded()
                    try await office.send("\(Int(due))", to: "there", at: Date(timeIntervalSince1970: due / 1000))
                }
                // Until all were sent.
                while try await !office.scheduledSends(limit: 1).isEmpty {
                    try await Task.sleep(for: .milliseconds(50))
                }
            }
        }
    }

    static func peer(url: String, count: Int, prefix: String, placement: Placement) async throws -> Figures {
        try await withBenchOffice(url: url, namespace: prefix) { redis, office in
            let there = try office.mailbox("there")
            return try await placement.run(redis) {
                var histogram = Figures.makeHistogram()
                var cursor: Cursor?
                var left = count
                while left > 0 {
                    let delivery = try await there.listen(after: cursor)
                    let now = Date.now.timeIntervalSince1970
                    cursor = delivery.cursor
                    if case .messages(let messages) = delivery.status {
                        for message in messages {
                            let due = (Double(message.text) ?? 0) / 1000
                            _ = histogram.record(UInt64(max(0, (now - due) * 1e9)))
                        }
                        left -= messages.count
                    }
                }
                return Figures(histogram)
            }
        }
    }
}
