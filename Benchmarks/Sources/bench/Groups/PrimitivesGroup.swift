import Foundation

extension Plan {
    /// What waits for many, reads with many, takes over, or waits under a mutex.
    func primitives(_ url: String, _ table: inout Table) throws {
        for placement in Placement.allCases {
            let rates = try together("barrier", sizes.rounds, url, placement)
            table.add(
                "Barrier of \(Together.parties) processes, TCP, rounds/s", placement.title, rates.min() ?? 0,
                isCompared: false)
        }
        let group =
            "\(Together.parties) processes of 4 tasks, 1 ms each, one of 20 changes something, TCP, operations/s"
        for (name, job) in [("DistributedMutex", "looks-alone"), ("ReadWriteLock", "looks-shared")] {
            let rates = try together(job, sizes.looks, url, .pinned)
            table.add(group, name, rates.reduce(0, +))
        }
        let turns = "Taking turns under a mutex with conditions, TCP, µs for one turn"
        let floor: Figures = try baseline(["handoff", url, "\(sizes.handoffs)"])
        table.add(turns, "C, hiredis, hand-off", floor, goal: nil)
        for placement in Placement.allCases {
            let prefix = randomPrefix()
            let peer = try worker("condition-peer", url, sizes.handoffs / 4, prefix, placement)
            let output = try worker("condition", url, sizes.handoffs / 4, prefix, placement).rest()
            _ = try peer.rest()
            table.add(turns, "Condition, \(placement.title)", try decode(output), goal: nil)
        }
        for _ in 0..<sizes.failovers { try failover(url, &table) }
    }

    private func together(_ job: String, _ count: Int, _ url: String, _ placement: Placement) throws -> [Double] {
        let prefix = randomPrefix()
        let all = try (0..<Together.parties).map { _ in try worker(job, url, count, prefix, placement) }
        return try all.map { try rate($0) }
    }

    /// From a leader's death by kill -9 until the next one leads.
    private func failover(_ url: String, _ table: inout Table) throws {
        let prefix = randomPrefix()
        let leader = try worker("candidate", url, 0, prefix, .pinned)
        _ = try leader.line()
        let heir = try worker("candidate", url, 0, prefix, .pinned)
        // At any moment between two heartbeats.
        Thread.sleep(forTimeInterval: 1 + .random(in: 0..<1))
        let death = monotonicNow()
        kill(leader.processID, SIGKILL)
        guard let began = Int64(try heir.line()) else { throw Failed("the heir did not say when it began") }
        kill(heir.processID, SIGKILL)
        let ttl = Double(Failover.ttl / .milliseconds(1))
        let group = "Election: from a leader's kill -9 until the next one leads, ms"
        table.add(group, "time to live", ttl)
        table.add(group, "failover", Double(began - death) / 1e6)
    }
}
