// Every primitive under every fault, with the same mix and the same checks.
import Foundation
import Hiredis
import RedisDC
import RedisDCTesting
import TestKinds
import TestRandom
import TestSupport
import Testing

@testable import RedisDCTestSupport

extension KindTests {
    @Suite("Under faults")
    struct FaultTests {
        @Test("uses no key that a script has deleted, as while its slot is being moved")
        func deletedKeys() async throws {
            try await forSeeds { seed in
                try await withServer { _, redis, other in
                    let moving = [MovingSlotRedis(redis), MovingSlotRedis(other)]
                    try await withCoordinator(redis: moving[0], configuration: longTTL) { one in
                        try await withCoordinator(redis: moving[1], configuration: longTTL) { two in
                            let mix = KindMix(nodes: [one, two], seed: seed, watch: KindWatch(), cancels: true)
                            try await judge(mix, redis)
                        }
                    }
                    for redis in moving { #expect(redis.count > 100) }
                }
            }
        }

        @Test("keeps its guarantees when Redis is killed and comes back with its data")
        func restarts() async throws {
            try await forSeeds { seed in
                try await withCoordinators(
                    .init(persistence: .appendOnly(fsync: .always)), configuration: shortTTL
                ) { server, one, two, redis in
                    let mix = Task {
                        try await judge(KindMix(nodes: [one, two], seed: seed, watch: KindWatch(), steps: 120), redis)
                    }
                    for _ in 0..<3 {
                        let before = try await commands(redis)
                        try await until("some has been done") { try await commands(redis) > before + 300 }
                        tally(.fault)
                        await server.kill()
                        try await server.restart()
                    }
                    try await mix.value
                }
            }
        }

        @Test("keeps its guarantees when a node is cut off for longer than its sessions live")
        func partition() async throws {
            try await forSeeds { seed in
                try await withProxiedCoordinator(configuration: shortTTL) { proxy, proxied, other, redis in
                    let mix = Task {
                        try await judge(
                            KindMix(nodes: [proxied, other], seed: seed, watch: KindWatch(), steps: 120), redis)
                    }
                    let before = proxy.counters.bytesToServer
                    try await proxy.waitUntil(within: .seconds(120)) { $0.bytesToServer > before + 50_000 }
                    let session = try await Audit(redis).sessions
                    tally(.fault)
                    await proxy.stall()
                    try await until("its session has ended") {
                        try await !Audit(redis).sessions.isSuperset(of: session)
                    }
                    await proxy.heal()
                    try await mix.value
                }
            }
        }

        @Test(
            "fails a check when a safeguard of the scripts is removed",
            arguments: [
                ["passes = members > 0 or is_free and", "passes = true or", "two groups in room"],
                [
                    "passes = resource_free >= claim_count and (resource_waiting == 0 or resource_kind == 'sb')",
                    "passes = resource_waiting == 0", "rw is too full",
                ],
            ])
        func mutated(_ words: [String]) async throws {
            // A run shows the fault or not, depending on timing; one of 20 must show it.
            for seed in 1...20 as ClosedRange<UInt64> {
                let faults = try await withServer { _, redis, _ in
                    let altered = AlteredRedis(redis, words[0], without: words[1])
                    let watch = KindWatch()
                    try await withCoordinator(redis: altered, configuration: longTTL) { node in
                        // With the altered script nothing else is guaranteed, not even that the mix ends.
                        let mix = Task { try await KindMix(nodes: [node], seed: seed, watch: watch).run() }
                        let end = ContinuousClock.now + .seconds(5)
                        while await !watch.faults.contains(where: { $0.contains(words[2]) }), ContinuousClock.now < end
                        {
                            try await Task.sleep(for: .milliseconds(5))
                        }
                        mix.cancel()
                    }
                    #expect(altered.hasReplaced)
                    return await watch.faults
                }
                if faults.contains(where: { $0.contains(words[2]) }) { return }
            }
            Issue.record("no run reported: \(words[2])")
        }
    }
}
