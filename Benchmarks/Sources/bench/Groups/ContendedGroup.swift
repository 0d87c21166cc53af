import Foundation

extension Plan {
    /// Measures one mutex for which several processes contend all the time.
    func contended(_ url: String, _ table: inout Table) throws {
        let python = others.appendingPathComponent("contended.py").path
        let findLibraries =
            "import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, ('redis', 'redis_lock'))))"
        let hasPython = (try? Program.output(nil, "python3", ["-c", findLibraries])) != nil
        if !hasPython {
            table.note("redis-py and python-redis-lock were not measured: python3 cannot import both.")
        }
        for processes in [2, 8, 32] {
            let group = "One mutex, \(processes) processes, TCP, hand-offs/s"
            for placement in Placement.allCases {
                let prefix = randomPrefix()
                let result = try contend(processes) { try worker("contended", url, 0, prefix, placement) }
                table.add(group, "DistributedMutex, \(placement.title)", result.handoffs, also: result.also)
            }
            guard hasPython else { continue }
            for (name, library) in [("redis-py Lock", "redis-py"), ("python-redis-lock", "redis-lock")] {
                let key = randomPrefix()
                let result = try contend(processes) { try Program(nil, "python3", [python, library, url, key]) }
                table.add(group, name, result.handoffs, also: result.also)
            }
        }
    }

    private func contend(_ count: Int, _ start: () throws -> Program) throws -> ContentionResult {
        let processes = try (0..<count).map { _ in try start() }
        for process in processes { _ = try process.line() }
        // 200 ms from now, so that all processes have read the line by then.
        let begin = monotonicNow() + 200_000_000
        let end = begin + Int64(sizes.contention * 1e9)
        for process in processes { try process.writeLine("\(begin) \(end)") }
        return ContentionResult(try processes.map { Locks(try $0.rest()) }, from: begin, until: end)
    }
}

/// The locks that one process acquired: when, and how long it waited.
private struct Locks {
    var all: [(at: Int64, waited: Int64)]

    init(_ text: String) {
        all = text.split(separator: "\n").compactMap { line in
            let numbers = line.split(separator: " ").compactMap { Int64($0) }
            return numbers.count == 2 ? (numbers[0], numbers[1]) : nil
        }
    }
}

private struct ContentionResult {
    /// Locks per second that another process acquired than the lock before.
    var handoffs: Double
    var also: Table.Also

    init(_ processes: [Locks], from begin: Int64, until end: Int64) {
        // Only one process holds the mutex at a time, so the locks of all processes in order of time are its history.
        let history = processes.enumerated()
            .flatMap { number, locks in locks.all.map { (at: $0.at, waited: $0.waited, by: number) } }
            .filter { $0.at < end }
            .sorted { $0.at < $1.at }
        let seconds = Double(end - begin) / 1e9
        handoffs = Double(zip(history, history.dropFirst()).filter { $0.by != $1.by }.count) / seconds
        var counts = [Int](repeating: 0, count: processes.count)
        for lock in history { counts[lock.by] += 1 }
        var waits = Figures.makeHistogram()
        for lock in history { _ = waits.record(UInt64(max(0, lock.waited))) }
        let figures = Figures(waits)
        also = [
            ("locks/s", Double(history.count) / seconds), ("p50 of the wait, µs", figures.p50_us),
            ("p99", figures.p99_us),
            ("min/max locks of a process", Double(counts.min() ?? 0) / Double(max(1, counts.max() ?? 0))),
        ]
    }
}
