import Foundation
import RedisDC

/// Measures one mutex that the tasks of a process use all the time, with a locality.
enum LocalMutex {
    static func locality(_ word: String?) throws -> Locality {
        switch word {
        case "strict": .strict
        case "cohort": .cohort()
        case let word? where word.hasPrefix("cohort:"): .cohort(limit: Int(word.dropFirst(7)) ?? 0)
        default: throw BenchError("expected strict or cohort")
        }
    }

    /// - Returns: Pairs of lock and unlock per second of one task.
    static func pairs(url: String, count: Int, prefix: String, placement: Placement, locality: Locality) async throws
        -> Double
    {
        try await withBenchCoordinator(url: url, namespace: prefix) { redis, coordinator in
            let mutex = try coordinator.mutex("mutex", locality: locality)
            return try await placement.run(redis) {
                for _ in 0..<(count / 10 + 1) { try await mutex.withLock { _ in } }
                let start = monotonicNow()
                for _ in 0..<count { try await mutex.withLock { _ in } }
                return Double(count) / (Double(monotonicNow() - start) / 1e9)
            }
        }
    }

    /// One of several processes, in each of which several tasks lock the same mutex and unlock it immediately.
    ///
    /// Prints `ready` when it has a session, then reads the start and the end of the measurement. At the end it prints how
    /// often its tasks have had the mutex.
    static func contend(url: String, tasks: Int, prefix: String, placement: Placement, locality: Locality) async throws
    {
        let count = try await withBenchCoordinator(url: url, namespace: prefix) { redis, coordinator in
            let mutex = try coordinator.mutex("contended", locality: locality)
            try await mutex.withLock { _ in }
            let (start, end) = try ParentInput.measurement()
            return try await placement.run(redis) {
                while monotonicNow() < start { try await Task.sleep(for: .milliseconds(1)) }
                return try await withThrowingTaskGroup(of: Int.self) { group in
                    for _ in 0..<tasks {
                        group.addTask {
                            var count = 0
                            while monotonicNow() < end {
                                try await mutex.withLock { _ in }
                                count += 1
                            }
                            return count
                        }
                    }
                    return try await group.reduce(0, +)
                }
            }
        }
        FileHandle.standardOutput.write(Data("\(count)\n".utf8))
    }
}
