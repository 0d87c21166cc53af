// Every primitive under every fault, with the same mix and the same checks.
import Foundation
import Hiredis
import RedisDC
import RedisDCTesting
import TestKinds
import TestRandom
import TestSupport
import Testing

@Suite("Every primitive", .serialized)
enum KindTests {}

/// The number of mixes that each test runs, and the first seed: scripts/stress sets them.
private let rounds = ProcessInfo.processInfo.environment["REDISDC_KIND_ROUNDS"].flatMap { Int($0) } ?? 1
private let firstSeed = testSeed(of: "KindTests")

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
                    #expect(proxy.counters.droppedReplies > 3)
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
                ["passes = members > 0 or free >= wanted and waiting == 0", "passes = true", "two groups in room"],
                [
                    "passes = free >= wanted and (waiting == 0 or kind == 'sb')", "passes = waiting == 0",
                    "rw is too full",
                ],
            ])
        func mutated(_ words: [String]) async throws {
            // Whether a run shows the fault depends on timing; one of 20 must show it.
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

        @Test("keeps its guarantees when one process is stopped for longer than its session lives and one is killed")
        func processes() async throws {
            try await forSeeds { seed in
                try await withNodes { node, server, redis in
                    func worker(_ number: UInt64) throws -> Child {
                        try Child(
                            "redisdc-worker",
                            [
                                "engine-kinds", server.url, "-", "\(seed * 10 + number)",
                                "\(number == 3 ? 100_000 : 150)",
                            ])
                    }
                    let workers = try (0...3).map(worker)
                    let before = try await commands(redis)
                    try await until("they are at work") { try await commands(redis) > before + 2000 }
                    let sessions = try await Audit(redis).sessions
                    tally(.fault)
                    kill(workers[0].processID, SIGSTOP)
                    try await workers[3].kill9()
                    try await until("the sessions of both have ended") {
                        try await sessions.subtracting(Audit(redis).sessions).count >= 2
                    }
                    kill(workers[0].processID, SIGCONT)
                    for worker in workers.prefix(3) { #expect(try await worker.result() == "", "seed \(seed)") }
                    let buffer = try node.boundedBuffer("k", of: String.self, capacity: KindMix.capacity)
                    // Items that a dead session held return one by one, as its claims are released.
                    try await until("no claims and no items are left (seed \(seed))") {
                        while (try? await buffer.take(timeout: .zero)) != nil {}
                        let audit = try await Audit(redis)
                        return audit.claims.isEmpty && audit.items.isEmpty
                    }
                    let audit = try await Audit(redis)
                    audit.check("seed \(seed)")
                    #expect(audit.groups.isEmpty && audit.meetings.isEmpty && audit.items.isEmpty, "seed \(seed)")
                }
            }
        }
    }
}

func forSeeds(_ body: (UInt64) async throws -> Void) async throws {
    for round in 0..<rounds { try await body(firstSeed + UInt64(round)) }
}

private func commands(_ redis: RedisClient) async throws -> Int {
    let text = (try? await redis.send("INFO", "stats").string) ?? ""
    let line = text.split(whereSeparator: \.isNewline).first { $0.hasPrefix("total_commands_processed:") }
    return line.flatMap { Int($0.dropFirst("total_commands_processed:".count)) } ?? 0
}

/// Runs the mix. Afterwards no claims are left, nothing is missing, and the counts in Redis agree.
func judge(_ mix: KindMix, _ redis: RedisClient, partitions: Int = 1) async throws {
    try await mix.run()
    tally(.promise, await mix.watch.checks)
    let seed: Comment = "seed \(mix.seed)"
    // The items that lost bodies held come back when their sessions end.
    let buffer = try mix.nodes[0].boundedBuffer("k", of: String.self, capacity: KindMix.capacity)
    try await until("each item has been seen (seed \(mix.seed))") {
        if let item = try? await buffer.take(timeout: .milliseconds(20)) { await mix.watch.handles(item) }
        return await mix.watch.missing.isEmpty
    }
    for partition in 0..<partitions {
        try await until("all has ended (seed \(mix.seed))") {
            try await Audit(redis, partition: partition).claims.isEmpty
        }
        let audit = try await Audit(redis, partition: partition)
        audit.check(seed)
        #expect(audit.groups.isEmpty && audit.meetings.isEmpty, seed)
    }
    let faults = await mix.watch.faults
    #expect(faults == [], seed)
    // The run is meaningful only if most operations succeeded; some need luck to find a partner in time.
    let successes = await mix.watch.successes
    #expect(successes.count > Kind.allCases.count / 2, "\(Set(Kind.allCases).subtracting(successes.keys)), \(seed)")
}
