import RedisDCTesting

extension Plan {
    /// Many waiters in one process: what they cost while they wait, and how fast they wake.
    func waiters(_ server: LocalRedis, _ table: inout Table) throws {
        let count = sizes.waiters
        let title = "\(count) waiters on \(count) names, one process, TCP"
        let (costs, waking) = ("\(title): what they take", "\(title): time until all are woken, ms")
        // The first time makes the semaphores; with waiters they are there too.
        let unwatched = randomPrefix()
        _ = try signals(server.url, unwatched, count)
        table.add(waking, "C, hiredis, as many pipelined signals alone", try signals(server.url, unwatched, count).ms)
        for placement in Placement.allCases {
            let prefix = randomPrefix()
            let process = try worker("waiters", server.url, count, prefix, placement)
            _ = try process.line()
            let before = try residentBytes(process.processID)
            try process.tell("wait")
            _ = try process.line()
            let bytes = Double(try residentBytes(process.processID) - before) / Double(count)
            let connections = try connections(server, named: prefix)
            let sent = try signals(server.url, prefix, count)
            guard let end = Int64(try process.rest()) else { throw Failed("the waiters did not say when they woke") }

            table.add(
                costs, "connections, \(placement.title)", Double(connections), isCompared: false, goal: "at most 2")
            table.add(
                costs, "resident bytes a waiter, \(placement.title)", bytes, isCompared: false, goal: "at most 2048")
            table.add(
                waking, "Semaphore, \(placement.title)", Double(end - sent.start_ns) / 1e6,
                also: [("of it until C has all answers", sent.ms)], goal: "at most 2")
        }
    }

    private func signals(_ url: String, _ namespace: String, _ count: Int) throws -> Signals {
        try baseline(["signals", url, scripts, namespace, "w", "\(count)"])
    }
}

/// What the C program prints.
private struct Signals: Decodable {
    var start_ns: Int64
    var ms: Double
}
