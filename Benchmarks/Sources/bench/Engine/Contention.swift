import Foundation
import RedisDC

/// One of several processes that lock the same mutex, unlock it immediately and lock it again.
///
/// Prints `ready` when it has a session, then reads the start and the end of the measurement. At the end it prints a line
/// for each lock that it acquired: the time, and how long it waited, in nanoseconds. Others/contended.py does the same
/// with other libraries.
enum Contention {
    static func run(url: String, prefix: String, placement: Placement) async throws {
        let lines = try await withBenchCoordinator(url: url, namespace: prefix) { redis, coordinator in
            let mutex = try coordinator.mutex("contended")
            try await mutex.withLock { _ in }
            let (start, end) = try ParentInput.measurement()
            return try await placement.run(redis) {
                while monotonicNow() < start { try await Task.sleep(for: .milliseconds(1)) }
                return try await contend(mutex, until: end)
            }
        }
        FileHandle.standardOutput.write(Data(lines.utf8))
    }

    private static func contend(_ mutex: DistributedMutex, until end: Int64) async throws -> String {
        var locks: [(at: Int64, waited: Int64)] = []
        while true {
            let start = monotonicNow()
            if start >= end { break }
            let lease = try await mutex.lock()
            let now = monotonicNow()
            try await lease.release()
            locks.append((now, now - start))
        }
        return locks.map { "\($0.at) \($0.waited)\n" }.joined()
    }
}
