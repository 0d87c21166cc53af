import Hiredis
import RedisDC
import RedisDCTesting
import Synchronization
import TestKinds
import TestRandom
import TestSupport
import Testing

@testable import RedisDCTestSupport

extension KindTests {
    @Suite("On a cluster", .timeLimit(.minutes(10)))
    struct ClusterTests {
        @Test("keeps its guarantees while slots move and masters are replaced by their replicas", arguments: [1, 64])
        func moves(partitions: Int) async throws {
            // A latch stays open, so each mix has a cluster of its own.
            try await forSeeds { seed in
                try await withLocalCluster(.init(nodeTimeout: .seconds(20))) { try await mix(seed, partitions, on: $0) }
            }
        }

        @Test("continues while its slot is being moved and no key has been moved yet")
        func moveThatDoesNotEnd() async throws {
            try await forSeeds { seed in
                try await withLocalCluster(.init(nodeTimeout: .seconds(20))) { cluster in
                    try await withTestClient(url: cluster.url) { redis in
                        let key = "rdc:{default:0}:book"
                        let source = try await cluster.master(ofKey: key)
                        let target = try #require(try await cluster.masters().first { $0 !== source })
                        let slot = try await cluster.slot(of: key)
                        try await withCoordinator(redis: redis, configuration: longTTL) { one in
                            // Sessions exist as soon as something has been done.
                            try await one.mutex("first").withLock { _ in }
                            try await withCoordinator(redis: redis, configuration: longTTL) { two in
                                try await two.mutex("first").withLock { _ in }
                                try await cluster.beginMove(slot: slot, from: source, to: target)
                                let mix = KindMix(nodes: [one, two], seed: seed, watch: KindWatch())
                                try await judge(mix, redis)
                                try await cluster.finishMove(slot: slot, from: source, to: target)
                                try await one.mutex("first").withLock { _ in }
                            }
                        }
                    }
                }
            }
        }

        private func mix(_ seed: UInt64, _ partitions: Int, on cluster: LocalCluster) async throws {
            try await withTestClient(url: cluster.url) { first in
                try await withTestClient(url: cluster.url) { second in
                    var configuration = longTTL
                    configuration.partitions = partitions
                    try await withCoordinator(redis: first, configuration: configuration) { one in
                        try await withCoordinator(redis: second, configuration: configuration) { two in
                            let mix = KindMix(nodes: [one, two], seed: seed, watch: KindWatch(), steps: 600)
                            let changes = Changes(cluster: cluster, partitions: partitions, mix: mix)
                            try await changes.whileRunning { try await judge(mix, first, partitions: partitions) }
                        }
                    }
                }
            }
        }
    }
}

/// Whether the mix has ended.
private final class End: Sendable {
    private let flag = Atomic(false)

    var hasCome: Bool {
        get { flag.load(ordering: .acquiring) }
        set { flag.store(newValue, ordering: .releasing) }
    }
}

/// Moves the slots of the partitions, and replaces masters by their replicas without a loss, while a mix runs.
private struct Changes {
    let cluster: LocalCluster
    let partitions: Int
    let mix: KindMix

    /// Runs the body, and begins another change whenever the mix has done some more: first the replacement of a
    /// master, as a slow machine may not come to more.
    func whileRunning(_ body: @escaping @Sendable () async throws -> Void) async throws {
        let end = End()
        let running = Task {
            defer { end.hasCome = true }
            try await body()
        }
        var count = 0
        while !end.hasCome {
            let wanted = await operations + 50
            try await until("some has been done") { await operations >= wanted || end.hasCome }
            if end.hasCome { break }
            try await change(count)
            tally(.fault)
            count += 1
        }
        try await running.value
        #expect(count > 0, "the mix ended before the first change, seed \(mix.seed)")
    }

    private var operations: Int { get async { await mix.watch.successes.values.reduce(0, +) } }

    private func change(_ number: Int) async throws {
        // Twice, there and back: the masters vote for a replica of the same master once in two node timeouts.
        if number == 0 || number == 3 {
            let master = try await cluster.master(ofKey: key(0))
            let replica = try #require(try await cluster.replicas(of: master).first)
            return try await cluster.promote(replica)
        }
        let masters = try await cluster.masters()
        let source = try await cluster.master(ofKey: key(number % partitions))
        let target = try #require(masters.first { $0 !== source })
        // Some of the partitions, beginning with another one each time.
        for partition in (0..<min(partitions, 8)).map({ (number + $0) % partitions })
        where try await cluster.master(ofKey: key(partition)) === source {
            try await cluster.move(slots: [try await cluster.slot(of: key(partition))], to: target)
        }
    }

    private func key(_ partition: Int) -> String { "rdc:{default:\(partition)}:book" }
}

extension LocalCluster {
    fileprivate func slot(of key: String) async throws -> Int {
        let reply = try await withTestClient(url: nodes[0].url) {
            try await $0.send("CLUSTER", "KEYSLOT", .string(key))
        }
        return try #require(reply.integer)
    }
}
