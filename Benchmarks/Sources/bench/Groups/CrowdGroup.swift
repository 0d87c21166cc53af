import Foundation

extension Plan {
    /// Measures the server's cost of an operation beside many waiters, sessions or semaphores. The target is a constant
    /// cost.
    func crowd(_ url: String, _ table: inout Table) throws {
        let kinds = [
            ("waiters", "waiters in the queue"), ("sessions", "other sessions"), ("names", "other semaphores"),
        ]
        for (kind, title) in kinds {
            for count in sizes.crowds {
                let cost: Crowd = try baseline(["crowd", url, scripts, kind, "\(count)", "\(sizes.crowdRounds)"])
                let lock = kind == "waiters" ? "Joining and leaving the queue" : "Lock and unlock"
                table.add("\(lock), by number of \(title), server time, µs", "\(count)", cost.lock_us, goal: "constant")
                let signal = "Wait, and signal that wakes the first waiter"
                table.add(
                    "\(signal), by number of \(title), server time, µs", "\(count)", cost.signal_us, goal: "constant")
            }
        }
    }
}

/// The output of the C program.
// swift-format-ignore: AlwaysUseLowerCamelCase
private struct Crowd: Decodable {
    var lock_us: Double
    var signal_us: Double
}
