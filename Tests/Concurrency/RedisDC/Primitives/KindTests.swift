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
        @Test("keeps its guarantees when nothing fails")
        func calm() async throws {
            try await forSeeds { seed in
                try await withCoordinators { _, one, two, redis in
                    try await judge(KindMix(nodes: [one, two], seed: seed, watch: KindWatch()), redis)
                }
            }
        }

        @Test("keeps its guarantees in a storm of cancels")
        func cancelStorm() async throws {
            try await forSeeds { seed in
                try await withCoordinators { _, one, two, redis in
                    try await judge(
                        KindMix(nodes: [one, two], seed: seed, watch: KindWatch(), cancels: true, steps: 120), redis)
                }
            }
        }

        @Test("keeps its guarantees without wake-ups")
        func noWakeUps() async throws {
            var configuration = longTTL
            configuration.usesWakeUps = false
            configuration.pollInterval = .milliseconds(10)
            try await forSeeds { [configuration] seed in
                try await withCoordinators(configuration: configuration) { _, one, two, redis in
                    try await judge(KindMix(nodes: [one, two], seed: seed, watch: KindWatch()), redis)
                }
            }
        }

        @Test("keeps its guarantees when replies are lost")
        func lostReplies() async throws {
            try await forSeeds { seed in
                try await withProxiedCoordinator { proxy, proxied, other, redis in
                    let losing = Task {
                        for count in 1... {
                            await proxy.dropNextReply(matching: "EVALSHA")
                            try await proxy.waitUntil(within: .seconds(300)) { $0.droppedReplies >= count }
                            tally(.fault)
                            let sent = proxy.counters.bytesToServer
                            try await proxy.waitUntil(within: .seconds(300)) { $0.bytesToServer > sent + 10_000 }
                        }
                    }
                    try await judge(
                        KindMix(nodes: [proxied, other], seed: seed, watch: KindWatch(), cancels: true), redis)
                    losing.cancel()
                    _ = await losing.result
                    #expect(proxy.counters.droppedReplies > 0)
                }
            }
        }
    }
}
