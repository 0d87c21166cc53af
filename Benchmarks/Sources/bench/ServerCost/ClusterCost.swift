// The cost of operations for the servers of a cluster, in instructions.
import Foundation
import Hiredis
import QueueListen
import RedisDC
import RedisDCTesting

/// The operations whose cost on a cluster is compared with that on one server.
enum ClusterCost: String, CaseIterable {
    case lockPair = "lock and unlock, uncontended"
    case handOff = "semaphore: hand-off to a waiter"
    case send = "mailbox: listen that waits, send of 256 bytes, listen that reads it"

    var count: Int { self == .lockPair ? 1600 : 640 }

    /// The counts of each server: for the commands of clients, and for the messages of other servers.
    enum Part: String {
        case commands = "readQueryFromClient"
        case bus = "clusterReadHandler"
    }

    /// Returns the instructions of all masters together for one operation.
    ///
    /// - Parameter masters: 0 for one server that is not a cluster.
    func instructions(_ part: Part, masters: Int, partitions: Int) async throws -> Double {
        // At the same time, because what other processes do changes no count.
        async let short = total(part, masters, partitions, count)
        async let long = total(part, masters, partitions, 2 * count)
        return Double(try await long - short) / Double(count)
    }

    private func total(_ part: Part, _ masters: Int, _ partitions: Int, _ count: Int) async throws -> Int {
        let options = "--collect-atstart=no --toggle-collect=\(part.rawValue)"
        let totals = try await CountedServer.totals(options: options) { program in
            let server = LocalRedis.Configuration(
                binary: program, extra: CountedServer.settings, startTimeout: .seconds(120))
            guard masters > 0 else {
                return try await withLocalRedis(server) {
                    try await run($0.url, partitions, count)
                    try await $0.shutdown()
                }
            }
            // No server is considered down, however slow it is.
            let cluster = LocalCluster.Configuration(
                server: server, masters: masters, replicasPerMaster: 0, nodeTimeout: .seconds(600))
            try await withLocalCluster(cluster) {
                try await run($0.url, partitions, count)
                for node in $0.nodes { try await node.shutdown() }
            }
        }
        return totals.reduce(0, +)
    }

    private func run(_ url: String, _ partitions: Int, _ count: Int) async throws {
        switch self {
        case .lockPair, .handOff: try await engine(url, partitions, count)
        case .send: try await sends(url, partitions, count)
        }
    }

    private func engine(_ url: String, _ partitions: Int, _ count: Int) async throws {
        // No heartbeat comes in between.
        var configuration = CoordinatorConfiguration.bench(partitions: partitions)
        configuration.ttl = .seconds(3600)
        try await withBenchCoordinator(
            url: url, namespace: "cost", configuration: configuration, commandTimeout: .seconds(300)
        ) { _, coordinator in
            if self == .lockPair {
                for number in 0..<count {
                    try await coordinator.mutex("m\(number % 64)").withLock { _ in }
                }
                return
            }
            try await handOffs(coordinator, count)
        }
    }

    /// All wait before the first is signalled, so that every signal meets a waiter.
    private func handOffs(_ coordinator: Coordinator, _ count: Int) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<count {
                group.addTask { try await coordinator.semaphore("s\(number % 64)", permits: 0).wait() }
            }
            for name in 0..<64 {
                while try await coordinator.inspect("s\(name)", limit: 1)?.waiterCount != count / 64 {
                    try await Task.sleep(for: .milliseconds(200))
                }
            }
            for number in 0..<count { try await coordinator.semaphore("s\(number % 64)", permits: 0).signal() }
            try await group.waitForAll()
        }
    }

    private func sends(_ url: String, _ partitions: Int, _ count: Int) async throws {
        try await withBenchOffice(url: url, namespace: "cost", partitions: partitions) { _, office in
            var cursors: [Cursor?] = Array(repeating: nil, count: 64)
            for number in 0..<count {
                let (name, slot) = ("m\(number % 64)", number % 64)
                let mailbox = try office.mailbox(name)
                // Registers the process, which the send then wakes.
                cursors[slot] = try await mailbox.listen(after: cursors[slot], timeout: .milliseconds(1)).cursor
                try await office.send(.bench, to: name)
                cursors[slot] = try await mailbox.listen(after: cursors[slot], timeout: .zero).cursor
            }
        }
    }
}

extension Plan {
    /// Instructions of all servers together for one operation. One round is enough: they hardly differ between runs.
    func clusterCost(_ table: inout Table) async throws {
        guard CountedServer.isAvailable else {
            table.note("cluster-cost is left out: there is no valgrind on this machine")
            return
        }
        for cost in ClusterCost.allCases {
            let group = "Instructions for one operation: \(cost.rawValue)"
            for (title, masters, partitions) in [
                ("one server, 1 partition", 0, 1), ("one server, 64 partitions", 0, 64),
                ("cluster of 3 masters, 64 partitions", 3, 64),
            ] {
                table.add(
                    group, title,
                    try await cost.instructions(.commands, masters: masters, partitions: partitions))
            }
            table.add(
                group, "messages between the 3 masters",
                try await cost.instructions(.bus, masters: 3, partitions: 64))
        }
    }
}
