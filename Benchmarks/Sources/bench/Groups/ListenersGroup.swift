import RedisDCTesting

extension Plan {
    /// Measures many listeners in one process: their cost while they wait, and how fast some of them wake.
    func listeners(_ server: LocalRedis, _ table: inout Table) throws {
        let count = sizes.listeners
        let woken = min(count, ManyListeners.woken)
        let title = "\(count) listeners, one process, TCP"
        let (costs, waking) = ("\(title): cost", "\(title): time to wake \(woken) at once, ms")
        table.add(waking, "the same sends without listeners", try wake(server.url, woken, randomPrefix()).ms)
        for placement in Placement.allCases {
            // The worker counts all keys of the server.
            _ = try Program.output(nil, "redis-cli", ["-p", "\(server.port)", "FLUSHALL"])
            let prefix = randomPrefix()
            let process = try worker("listeners", server.url, count, prefix, placement)
            _ = try process.line()
            let before = try residentBytes(process.processID)
            try process.writeLine("listen")
            _ = try process.line()
            let bytes = Double(try residentBytes(process.processID) - before) / Double(count)
            let connections = try connections(server, named: prefix)
            let sent = try wake(server.url, woken, prefix)
            guard let end = Int64(try process.rest()) else {
                throw BenchError("the listeners did not print when they woke")
            }

            table.add(
                costs, "connections, \(placement.title)", Double(connections), isCompared: false, goal: "at most 2")
            table.add(
                costs, "resident bytes per listener, \(placement.title)", bytes, isCompared: false, goal: "at most 2048"
            )
            table.add(
                waking, "Mailbox, \(placement.title)", Double(end - sent.start_ns) / 1e6,
                also: [("until the sender has all answers", sent.ms)])
        }
    }

    private func wake(_ url: String, _ count: Int, _ namespace: String) throws -> ManyListeners.Waking {
        try decode(try worker("wake", url, count, namespace, .global).rest())
    }
}
