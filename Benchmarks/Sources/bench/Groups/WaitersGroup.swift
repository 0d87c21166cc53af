import RedisDCTesting

extension Plan {
    /// Measures many waiters in one process: their cost while they wait, and how fast they wake.
    func waiters(_ server: LocalRedis, _ table: inout Table) throws {
        let count = sizes.waiters
        let title = "\(count) waiters on \(count) semaphores, one process, TCP"
        let (costs, waking) = ("\(title): cost", "\(title): time to wake all, ms")
        // The first run creates the semaphores, which also exist in the runs with waiters.
        let unwatched = randomPrefix()
        _ = try signals(server.url, unwatched, count)
        table.add(
            waking, "C, hiredis, the same pipelined signals without waiters",
            try signals(server.url, unwatched, count).ms)
        for placement in Placement.allCases {
            let prefix = randomPrefix()
            let process = try worker("waiters", server.url, count, prefix, placement)
            _ = try process.line()
            let before = try residentBytes(process.processID)
            try process.writeLine("wait")
            _ = try process.line()
            let bytes = Double(try residentBytes(process.processID) - before) / Double(count)
            let connections = try connections(server, named: prefix)
            let sent = try signals(server.url, prefix, count)
            guard let end = Int64(try process.rest()) else {
                throw BenchError("the waiters did not print when they woke")
            }

            table.add(
                costs, "connections, \(placement.title)", Double(connections), isCompared: false, goal: "at most 2")
            table.add(
                costs, "resident bytes per waiter, \(placement.title)", bytes, isCompared: false, goal: "at most 2048")
            table.add(
                waking, "Semaphore, \(placement.title)", Double(end - sent.start_ns) / 1e6,
                also: [("until C has all answers", sent.ms)], goal: "at most 2")
        }
    }

    private func signals(_ url: String, _ namespace: String, _ count: Int) throws -> Signals {
        try baseline(["signals", url, scripts, namespace, "w", "\(count)"])
    }
}

/// The output of the C program.
// swift-format-ignore: AlwaysUseLowerCamelCase
private struct Signals: Decodable {
    var start_ns: Int64
    var ms: Double
}
