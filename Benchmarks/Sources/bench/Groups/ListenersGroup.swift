import RedisDCTesting

extension Plan {
    /// Many listeners in one process: what they cost while they wait, and how fast some of them wake.
    func listeners(_ server: LocalRedis, _ table: inout Table) throws {
        let count = sizes.listeners
        let woken = min(count, ManyListeners.woken)
        let title = "\(count) listeners, one process, TCP"
        let (costs, waking) = ("\(title): what they take", "\(title): time until \(woken) are woken at once, ms")
        table.add(waking, "as many sends to nobody", try wake(server.url, woken, randomPrefix()).ms)
        for placement in Placement.allCases {
            // The server's keys are counted.
            _ = try Program.output(nil, "redis-cli", ["-p", "\(server.port)", "FLUSHALL"])
            let prefix = randomPrefix()
            let process = try worker("listeners", server.url, count, prefix, placement)
            _ = try process.line()
            let before = try residentBytes(process.processID)
            try process.tell("listen")
            _ = try process.line()
            let bytes = Double(try residentBytes(process.processID) - before) / Double(count)
            let connections = try connections(server, named: prefix)
            let sent = try wake(server.url, woken, prefix)
            guard let end = Int64(try process.rest()) else { throw Failed("the listeners did not say when they woke") }

            table.add(
                costs, "connections, \(placement.title)", Double(connections), isCompared: false, goal: "at most 2")
            table.add(
                costs, "resident bytes a listener, \(placement.title)", bytes, isCompared: false, goal: "at most 2048")
            table.add(
                waking, "Mailbox, \(placement.title)", Double(end - sent.start_ns) / 1e6,
                also: [("of it until the sender has all answers", sent.ms)])
        }
    }

    private func wake(_ url: String, _ count: Int, _ namespace: String) throws -> ManyListeners.Waking {
        try decode(try worker("wake", url, count, namespace, .global).rest())
    }
}
