// Mixes of every primitive, and the checks after them.
import Foundation
import Hiredis
import RedisDC
import TestKinds
import TestRandom
import TestSupport
import Testing

/// The number of mixes that each test runs, and the first seed: scripts/stress sets them.
private let rounds = ProcessInfo.processInfo.environment["REDISDC_KIND_ROUNDS"].flatMap { Int($0) } ?? 1
private let firstSeed = testSeed(of: "KindTests")

/// Runs `body` once for each mix, with its seed.
func forSeeds(_ body: (UInt64) async throws -> Void) async throws {
    for round in 0..<rounds { try await body(firstSeed + UInt64(round)) }
}

/// Returns the number of commands that the server has processed, or 0 while it does not answer.
func commands(_ redis: RedisClient) async throws -> Int {
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
    let names = Set(KindUse.all.map(\.name))
    #expect(successes.count > names.count / 2, "\(names.subtracting(successes.keys)), \(seed)")
}
