import Foundation

extension Plan {
    /// Measures a barrier, a read-write lock, conditions and the failover of an election.
    func primitives(_ url: String, _ table: inout Table) throws {
        for placement in Placement.allCases {
            let rates = try together("barrier", sizes.rounds, url, placement)
            table.add(
                "Barrier of \(ParallelProcesses.parties) processes, TCP, rounds/s", placement.title, rates.min() ?? 0,
                isCompared: false)
        }
        let group =
            "\(ParallelProcesses.parties) processes with 4 tasks, operations of 1 ms, 1 of 20 writes, TCP, operations/s"
        for (name, job) in [("DistributedMutex", "operations-mutex"), ("ReadWriteLock", "operations-read-write-lock")] {
            let rates = try together(job, sizes.operations, url, .pinned)
            table.add(group, name, rates.reduce(0, +))
        }
        let turns = "Turns under a mutex with conditions, TCP, µs per turn"
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
        let all = try (0..<ParallelProcesses.parties).map { _ in try worker(job, url, count, prefix, placement) }
        return try all.map { try rate($0) }
    }

    /// Measures the time from kill -9 of a leader until the next candidate leads.
    private func failover(_ url: String, _ table: inout Table) throws {
        let prefix = randomPrefix()
        let leader = try worker("candidate", url, 0, prefix, .pinned)
        _ = try leader.line()
        let successor = try worker("candidate", url, 0, prefix, .pinned)
        // A random moment between two heartbeats.
        Thread.sleep(forTimeInterval: 1 + .random(in: 0..<1))
        let death = monotonicNow()
        kill(leader.processID, SIGKILL)
        guard let began = Int64(try successor.line()) else {
            throw BenchError("the successor did not print when it became the leader")
        }
        kill(successor.processID, SIGKILL)
        let ttl = Double(Failover.ttl / .milliseconds(1))
        let group = "Election: from kill -9 of the leader to the next leader, ms"
        table.add(group, "TTL", ttl)
        table.add(group, "failover", Double(began - death) / 1e6)
    }
}
