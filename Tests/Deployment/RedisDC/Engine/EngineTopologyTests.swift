// The engine on several servers: a cluster and sentinels.
import Hiredis
import RedisDC
import RedisDCTesting
import TestSupport
import Testing

@testable import RedisDCTestSupport

extension EngineTests {
    @Suite("Sentinel and cluster", .serialized)
    struct TopologyTests {
        /// Takes and releases mutexes until the body has returned, and checks that their fences grow.
        private func locking(
            _ coordinator: Coordinator, tasks: Int = 6, _ body: (Passes) async throws -> Void
        ) async throws {
            let passes = Passes()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for task in 0..<tasks {
                    group.addTask {
                        let mutex = try coordinator.mutex("m\(task % 3)")
                        while !Task.isCancelled {
                            do {
                                try await mutex.withLock { lease in
                                    #expect(passes.add(lease.fence, to: task % 3), "the fence is not higher")
                                }
                            } catch let error as RedisDCError where error.code != .cancelled {
                                // A lease or an answer that was lost in the failover.
                            } catch is RedisDCError {
                                return
                            }
                        }
                    }
                }
                try await body(passes)
                group.cancelAll()
            }
        }

        @Test("mutexes of three partitions continue after moves of their slots and the loss of a master")
        func cluster() async throws { try await cluster(movesBy: .classic) }

        @Test(
            "mutexes of three partitions continue after atomic moves of their slots and the loss of a master",
            .needs(command: "cluster|migrateslots"))
        func atomicMoves() async throws { try await cluster(movesBy: .atomic) }

        private func cluster(movesBy way: SlotMove) async throws {
            try await withLocalCluster { cluster in
                try await withTestClient(url: cluster.url) { redis in
                    var configuration = longTTL
                    configuration.partitions = 3
                    try await withCoordinator(redis: redis, configuration: configuration) { coordinator in
                        try await locking(coordinator) { passes in
                            try await until("the locks are taken") { passes.count > 100 }
                            for partition in 0..<3 {
                                let slot = try await slot(of: "rdc:{default:\(partition)}:", cluster)
                                try await cluster.move(slots: [slot], to: cluster.nodes[(partition + 1) % 3], by: way)
                            }
                            let moved = passes.count
                            try await until("the locks are taken after the moves") { passes.count > moved + 100 }
                            await cluster.nodes[0].kill()
                            try await cluster.waitUntilHealthy()
                            for partition in 0..<3 {
                                let mutex = try coordinator.mutex("m\(partition)")
                                try await mutex.withLock { _ in }
                            }
                            let killed = passes.count
                            try await until("the locks are taken after the failover") { passes.count > killed + 100 }
                        }
                    }
                }
            }
        }

        @Test("a mutex continues after the sentinels have promoted a replica")
        func sentinel() async throws {
            try await withLocalSentinel(.init(replicas: 1)) { sentinel in
                try await withTestClient(url: sentinel.url) { redis in
                    try await withCoordinator(redis: redis, configuration: longTTL) { coordinator in
                        try await locking(coordinator) { passes in
                            try await until("the locks are taken") { passes.count > 100 }
                            let old = try await sentinel.master()
                            await old.kill()
                            _ = try await sentinel.waitForMaster(otherThan: old)
                            try await coordinator.mutex("m0").withLock { _ in }
                            let killed = passes.count
                            try await until("the locks are taken after the failover") { passes.count > killed + 100 }
                        }
                    }
                }
            }
        }

        /// The passes of tasks through the mutexes.
        private final class Passes: Sendable {
            private let state = Locked((count: 0, fences: [Int: UInt64]()))

            var count: Int { state.withLock { $0.count } }

            /// Returns whether the fence is higher than all earlier ones of the mutex.
            func add(_ fence: UInt64, to mutex: Int) -> Bool {
                state.withLock { state in
                    defer { state = (state.count + 1, state.fences.merging([mutex: fence]) { max($0, $1) }) }
                    return fence > state.fences[mutex] ?? 0
                }
            }
        }

        private func slot(of key: String, _ cluster: LocalCluster) async throws -> Int {
            try await withTestClient(url: cluster.nodes[1].url) {
                try await $0.send("CLUSTER", "KEYSLOT", .string(key)).integer ?? -1
            }
        }
    }
}
