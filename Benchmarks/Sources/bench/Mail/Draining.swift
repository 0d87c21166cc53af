import QueueListen

/// One reader that reads one mailbox empty, page by page, and acknowledges as it goes.
enum Draining {
    /// - Returns: messages in a second.
    static func run(url: String, count: Int, prefix: String, placement: Placement) async throws -> Double {
        try await withBenchOffice(url: url, namespace: prefix) { redis, office in
            try await office.fill("full", with: count)
            let mailbox = try office.mailbox("full")
            return try await placement.run(redis) {
                let start = monotonicNow()
                var left = count
                for try await event in mailbox.messages(limit: 1000) {
                    guard case .message = event else { throw Failed("a gap in a mailbox that nobody touched") }
                    left -= 1
                    if left == 0 { break }
                }
                return Double(count) / (Double(monotonicNow() - start) / 1e9)
            }
        }
    }
}
