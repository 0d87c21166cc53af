import Foundation
import Hiredis
import RedisDC
import RedisDCTesting

extension Plan {
    /// Measures how long after the death of a master a process has a lock again, against the time that the sentinels
    /// themselves need for a new master.
    func sentinel(_ table: inout Table) async throws {
        let group = "Sentinel: from kill -9 of the master, ms"
        for _ in 0..<sizes.failovers {
            let times = try await failoverOfSentinels()
            table.add(group, "until a majority of the sentinels names a new master", times.elected)
            table.add(
                group, "until withLock succeeds", times.locked,
                also: [("after the sentinels", times.locked - times.elected)], goal: "at most + 500 ms")
        }
    }

    private func failoverOfSentinels() async throws -> (elected: Double, locked: Double) {
        try await withLocalSentinel { sentinel in
            try await withBenchCoordinator(url: sentinel.url, namespace: randomPrefix(), commandTimeout: .seconds(60)) {
                _, coordinator in
                let mutex = try coordinator.mutex("m")
                try await mutex.withLock { _ in }
                let old = try await sentinel.master()
                // A random moment between two heartbeats, and between two questions to the sentinels.
                try await Task.sleep(for: .milliseconds(.random(in: 0..<5000)))
                let ports = sentinel.sentinels.map(\.port)
                return try await withSentinelClients(ports) { watchers in
                    let death = monotonicNow()
                    await old.kill()
                    async let elected = untilElected(watchers, sentinel.name, otherThan: old.port)
                    try await mutex.withLock { _ in }
                    let locked = monotonicNow()
                    return (Double(try await elected - death) / 1e6, Double(locked - death) / 1e6)
                }
            }
        }
    }

    /// Runs a body with a connection to each sentinel.
    private func withSentinelClients<Result>(
        _ ports: [Int], _ clients: [RedisClient] = [], _ body: ([RedisClient]) async throws -> Result
    ) async throws -> Result {
        guard clients.count < ports.count else { return try await body(clients) }
        return try await withRedisClient(url: "redis://127.0.0.1:\(ports[clients.count])") { client in
            try await withSentinelClients(ports, clients + [client], body)
        }
    }

    /// Returns the time at which a majority of the sentinels names a new master.
    private func untilElected(_ watchers: [RedisClient], _ name: String, otherThan old: Int) async throws -> Int64 {
        while true {
            var votes: [Int: Int] = [:]
            for watcher in watchers {
                let address = try await watcher.send("SENTINEL", "GET-MASTER-ADDR-BY-NAME", .string(name)).array
                if let port = address?.last?.integer, port != old { votes[port, default: 0] += 1 }
            }
            if votes.values.contains(where: { $0 > watchers.count / 2 }) { return monotonicNow() }
            try await Task.sleep(for: .milliseconds(2))
        }
    }
}
