// Every primitive, while replicas are promoted that lack the last writes.
import Foundation
import Hiredis
import RedisDC
import RedisDCTesting
import Synchronization
import TestKinds
import TestRandom
import TestSupport
import Testing

@testable import RedisDCTestSupport

/// The number of promotions: scripts/stress sets a larger one.
private let promotions = ProcessInfo.processInfo.environment["REDISDC_PROMOTIONS"].flatMap { Int($0) } ?? 6

extension EngineTests.FailureTests {
    @Test(
        "a process that loses a part of any primitive by a promotion is notified", .timeLimit(.minutes(60)))
    func promotionsOfAllKinds() async throws {
        let first = testSeed()
        try await withReplicatedServers { servers in
            try await withTestClient(url: servers.url) { one in
                try await withTestClient(url: servers.url) { two in
                    var delays: [Duration] = []
                    for round in 0..<promotions {
                        let seed = first + UInt64(round)
                        let run = PromotionRun(servers: servers, redis: [one, two], seed: seed)
                        try await run.make()
                        delays += run.delays
                        try await servers.rejoin()
                    }
                    delays.sort()
                    if let last = delays.last {
                        print("notified \(delays[delays.count / 2]) (median) and \(last) (longest) after the promotion")
                    }
                }
            }
        }
    }
}

/// A mix of all primitives by two processes, and one promotion in the middle of it.
private struct PromotionRun {
    let servers: ReplicatedServers
    let redis: [RedisClient]
    let seed: UInt64
    private let watch = KindWatch(expectsRollback: true)
    private let announcements = Announcements()

    init(servers: ReplicatedServers, redis: [RedisClient], seed: UInt64) {
        (self.servers, self.redis, self.seed) = (servers, redis, seed)
    }

    /// The times from the promotion until each process was notified, for those that lost something.
    var delays: [Duration] { announcements.delays }

    func make() async throws {
        var configuration = CoordinatorConfiguration()
        configuration.ttl = .seconds(6)
        let namespace = "promotion-\(seed)"
        try await withCoordinator(redis: redis[0], namespace: namespace, configuration: configuration) { one in
            try await withCoordinator(redis: redis[1], namespace: namespace, configuration: configuration) { two in
                let nodes = [one, two]
                let listening = nodes.enumerated().map { number, node in
                    let events = node.events()
                    return Task {
                        for await event in events { if case .dataLost = event { announcements.add(number) } }
                    }
                }
                let mix = KindMix(nodes: nodes, seed: seed, watch: watch, cancels: seed % 2 == 0, steps: 120)
                let running = Task { try await mix.run() }
                try await promote()
                try await running.value
                try await judge(mix, namespace)
                for task in listening { task.cancel() }
            }
        }
    }

    /// Promotes the replica after some writes that it lacks.
    private func promote() async throws {
        var generator = SplitMix(seed: seed)
        try await withTestClient(url: servers.server.url) { direct in
            let start = try await commands(direct)
            try await until("the mix is in progress, seed \(seed)") { try await commands(direct) > start + 1000 }
            try await servers.cutReplication()
            let wanted = try await commands(direct) + Int.random(in: 20...1500, using: &generator)
            try await until("the tail has writes, seed \(seed)") { try await commands(direct) > wanted }
        }
        announcements.promoted()
        await servers.promote()
    }

    private func judge(_ mix: KindMix, _ namespace: String) async throws {
        let reason: Comment = "seed \(seed)"
        // A fence must not be used twice, whether or not anybody is notified.
        let faults = await watch.faults
        #expect(!faults.contains { $0.contains("equal fences") }, reason)
        func wasNotified(_ operation: String) -> Bool { announcements.has(mix.node(of: operation)) }
        for (first, second, fault) in await watch.silentOverlaps {
            #expect(wasNotified(first) || wasNotified(second), "\(fault): \(first) and \(second), \(reason)")
        }
        // Everything else that is wrong is the loss of something that one of the processes had been promised.
        #expect(faults.isEmpty || announcements.hasAny, "\(faults.prefix(3)), \(reason)")
        try await withTestClient(url: servers.replica.url) { promoted in
            let buffer = try mix.nodes[0].boundedBuffer("k", of: String.self, capacity: KindMix.capacity)
            var left: [String: Audit.Claim] = [:]
            defer { if !left.isEmpty { print("left with \(reason): \(left)") } }
            try await until("all has ended, \(reason)", within: .seconds(60)) {
                while let item = try? await buffer.take(timeout: .zero) { await watch.handles(item) }
                left = try await Audit(promoted, namespace: namespace).claims
                return left.isEmpty
            }
            try await Audit(promoted, namespace: namespace).check(reason)
        }
        for item in await watch.missing {
            #expect(wasNotified(item), "\(item) is lost, \(reason)")
        }
        tally(.promise, await watch.checks)
    }
}

/// The processes that were notified that Redis has lost data.
private final class Announcements: Sendable {
    private struct State {
        var promotion: ContinuousClock.Instant?
        var notified: [Int: ContinuousClock.Instant] = [:]
    }
    private let state = Mutex(State())

    func promoted() { state.withLock { $0.promotion = .now } }

    func add(_ node: Int) { state.withLock { $0.notified[node] = $0.notified[node] ?? .now } }

    func has(_ node: Int) -> Bool { state.withLock { $0.notified[node] != nil } }

    var hasAny: Bool { state.withLock { !$0.notified.isEmpty } }

    var delays: [Duration] { state.withLock { state in state.notified.values.map { $0 - (state.promotion ?? $0) } } }
}

private func commands(_ redis: RedisClient) async throws -> Int {
    let text = try await redis.send("INFO", "stats").string ?? ""
    let line = text.split(whereSeparator: \.isNewline).first { $0.hasPrefix("total_commands_processed:") }
    return line.flatMap { Int($0.dropFirst("total_commands_processed:".count)) } ?? 0
}
