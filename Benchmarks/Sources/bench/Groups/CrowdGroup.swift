import Foundation

extension Plan {
    /// What an operation costs the server when there are many others: it is to be flat.
    func crowd(_ url: String, _ table: inout Table) throws {
        let kinds = [
            ("waiters", "waiters in the same queue"), ("sessions", "other sessions"), ("names", "other semaphores"),
        ]
        for (kind, title) in kinds {
            for count in sizes.crowds {
                let cost: Crowd = try baseline(["crowd", url, scripts, kind, "\(count)", "\(sizes.crowdRounds)"])
                let lock = kind == "waiters" ? "Queueing and leaving the queue" : "A lock and its unlock"
                table.add("\(lock), with \(title), at the server, µs", "\(count)", cost.lock_us, goal: "flat")
                let signal = "A wait and the signal that wakes the first"
                table.add("\(signal), with \(title), at the server, µs", "\(count)", cost.signal_us, goal: "flat")
            }
        }
    }
}

/// What the C program prints.
private struct Crowd: Decodable {
    var lock_us: Double
    var signal_us: Double
}
