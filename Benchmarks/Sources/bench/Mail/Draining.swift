import QueueListen

/// Measures one reader that drains one mailbox page by page and acknowledges messages as it reads.
enum Draining {
    /// - Returns: Messages per second.
    static func run(url: String, count: Int, prefix: String, placement: Placement) async throws -> Double {
        try await withBenchOffice(url: url, namespace: prefix) { redis, office in
            try await office.fill("full", with: count)
            let mailbox = try office.mailbox("full")
            return try await placement.run(redis) {
                let start = monotonicNow()
                var left = count
                for try await event in mailbox.messages(limit: 1000) {
                    guard case .message = event else { throw BenchError("unexpected gap in the mailbox") }
                    left -= 1
                    if left == 0 { break }
                }
                return Double(count) / (Double(monotonicNow() - start) / 1e9)
            }
        }
    }
}
