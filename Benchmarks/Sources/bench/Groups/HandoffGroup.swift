extension Plan {
    /// Measures a token that goes back and forth between two processes: by blocking calls in C, by the same Redis commands
    /// in Swift, and by the engine.
    func handoff(_ url: String, _ transport: String, _ table: inout Table) throws {
        let group = "Hand-off between two processes, \(transport), µs"
        let count = sizes.handoffs
        let floor: Figures = try baseline(["handoff", url, "\(count)"])
        table.add(group, "C, hiredis", floor, goal: nil)
        // The cost of the server's part, independent of the client.
        let scripted: Figures = try baseline(["engine-handoff", url, scripts, "\(count)"])
        table.add(group, "C, hiredis, with the engine's scripts", scripted, goal: nil)
        let candidates = [
            ("ClassicSemaphore", "handoff", "at most 1.10", "at most 1.5"),
            ("Semaphore", "engine-handoff", "at most 1.25", "at most 1.7"),
        ]
        for (name, job, pinned, global) in candidates {
            for placement in Placement.allCases {
                let prefix = randomPrefix()
                let peer = try worker("\(job)-peer", url, count, prefix, placement)
                let output = try worker(job, url, count, prefix, placement).rest()
                _ = try peer.rest()
                let goal = placement == .pinned ? pinned : global
                table.add(
                    group, "\(name), \(placement.title)", try decode(output), goal: transport == "TCP" ? goal : nil)
            }
        }
    }
}
