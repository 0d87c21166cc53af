import QueueListen

/// Measures the time from before `send` in one process until a task of another process that was waiting has the message,
/// one message at a time.
enum SendToReceipt {
    /// Sends the current time and waits for the answer, in each round.
    static func run(url: String, rounds: Int, prefix: String, placement: Placement) async throws {
        try await withBenchOffice(url: url, namespace: prefix) { redis, office in
            let back = try office.mailbox("back")
            try await placement.run(redis) {
                var cursor: Cursor?
                for _ in -Handoff.warmUp..<rounds {
                    try await office.send(Message(text: "\(monotonicNow())"), to: "there")
                    cursor = try await back.listen(after: cursor).cursor
                }
            }
        }
    }

    static func peer(url: String, rounds: Int, prefix: String, placement: Placement) async throws -> Figures {
        try await withBenchOffice(url: url, namespace: prefix) { redis, office in
            let there = try office.mailbox("there")
            return try await placement.run(redis) {
                var histogram = Figures.makeHistogram()
                var cursor: Cursor?
                for round in -Handoff.warmUp..<rounds {
                    let delivery = try await there.listen(after: cursor)
                    let now = monotonicNow()
                    cursor = delivery.cursor
                    if round >= 0, let sent = delivery.messages.first.flatMap({ Int64($0.text) }) {
                        _ = histogram.record(UInt64(max(0, now - sent)))
                    }
                    try await office.send("", to: "back")
                }
                return Figures(histogram)
            }
        }
    }
}
