import Foundation

extension Plan {
    /// Measures mutexes that stay with a process, and strict ones.
    func locality(_ url: String, _ table: inout Table) throws {
        try localPairs(url, &table)
        let group = "One mutex, 8 tasks in each of 4 processes, TCP, locks/s"
        for locality in ["strict", "cohort"] {
            for placement in Placement.allCases {
                let prefix = randomPrefix()
                let processes = try (0..<4).map { _ in
                    try worker("local-contended", url, 8, prefix, placement, [locality])
                }
                for process in processes { _ = try process.line() }
                let begin = monotonicNow() + 200_000_000
                let seconds = sizes.contention * 10 / 3
                for process in processes { try process.writeLine("\(begin) \(begin + Int64(seconds * 1e9))") }
                let counts = try processes.map { try rate($0) }
                table.add(
                    group, "\(locality), \(placement.title)", counts.reduce(0, +) / seconds,
                    also: [("min/max locks of a process", counts.min()! / max(1, counts.max()!))],
                    goal: locality == "cohort" ? "at least 20" : nil)
            }
        }
    }

    private func localPairs(_ url: String, _ table: inout Table) throws {
        let group = "One mutex, one task, TCP, pairs of lock and unlock/s"
        let findLibrary = "import importlib.util as u, sys; sys.exit(not u.find_spec('redis'))"
        if (try? Program.output(nil, "python3", ["-c", findLibrary])) != nil {
            let python = others.appendingPathComponent("pairs.py").path
            let words = [python, url, randomPrefix(), "\(sizes.pairs / 4)"]
            table.add(group, "redis-py Lock", try rate(Program(nil, "python3", words)))
        } else {
            table.note("redis-py was not measured: python3 cannot import it.")
        }
        for placement in Placement.allCases {
            let strict = try rate(worker("local-pairs", url, sizes.pairs, randomPrefix(), placement, ["strict"]))
            table.add(group, "strict, \(placement.title)", strict, goal: "at least 1.5")
        }
        for placement in Placement.allCases {
            let cohort = try rate(worker("local-pairs", url, sizes.pairs * 50, randomPrefix(), placement, ["cohort"]))
            table.add(group, "cohort, \(placement.title)", cohort, goal: "at least 50, and 300,000/s")
        }
    }
}
