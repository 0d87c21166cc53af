// Real runs, judged by what their callers saw: legal ones, and ones of which a safeguard was taken away.
import Foundation
import Hiredis
import RedisDC
import RedisDCTesting
import TestHistory
import TestSupport
import Testing

extension EngineTests {
    @Suite("Histories")
    struct HistoryTests {
        @Test("of processes whose replies are lost, one of which is killed, have an order that explains them")
        func processes() async throws {
            // scripts/stress sets more.
            let environment = ProcessInfo.processInfo.environment
            let rounds = environment["REDISDC_HISTORIES"].flatMap { Int($0) } ?? 1
            let first = environment["REDISDC_SEED"].flatMap { UInt64($0) } ?? .random(in: 0...999_999)
            for round in 0..<rounds {
                let seed = first + UInt64(round) * 100
                let history = try await Self.recorded(seed: seed, steps: rounds > 1 ? 400 : 120)
                Self.expectSound(history, seed: seed)
            }
        }

        private static func recorded(seed: UInt64, steps: Int) async throws -> History {
            try await withHistoryFolder { folder in
                try await withServer { server, redis, _ in
                    try await withFaultProxy(to: .port(server.port)) { proxy in
                        func worker(_ number: UInt64, _ port: Int) throws -> Child {
                            try Child(
                                "redisdc-worker",
                                [
                                    "engine-history", "redis://127.0.0.1:\(port)", "-", folder + "/\(number)",
                                    "\(seed + number)", "4", "\(steps)",
                                ])
                        }
                        let workers = try (1...3).map { try worker($0, proxy.port) }
                        // Not through the proxy: what it had answered for certain, and what not, is known.
                        let victim = try worker(4, server.port)
                        let losing = Task {
                            for count in 1... {
                                await proxy.dropNextReply(matching: "EVALSHA")
                                try await proxy.waitUntil(within: .seconds(300)) { $0.droppedReplies >= count }
                                // Most of the time all is well.
                                let sent = proxy.counters.bytesToServer
                                try await proxy.waitUntil(within: .seconds(300)) {
                                    $0.bytesToServer > sent + 40_000
                                }
                            }
                        }
                        let path = folder + "/4"
                        try await until("the victim works (seed \(seed))") {
                            let isThere = FileManager.default.fileExists(atPath: path)
                            return try isThere && History(files: [path]).calls.count > steps
                        }
                        try await victim.kill9()
                        for worker in workers { _ = try await worker.result() }
                        losing.cancel()
                        _ = await losing.result
                        #expect(proxy.counters.droppedReplies > 3)
                        try await until("what the killed one had is given back") {
                            // Whoever joins looks after the dead.
                            try await withCoordinator(redis: redis) { coordinator in
                                try await coordinator.semaphore("pool", permits: 3)
                                    .withPermits(3, timeout: .seconds(60)) { _ in true }
                            }
                        }
                        return try History(files: (1...4).map { folder + "/\($0)" })
                    }
                }
            }
        }

        /// Of one process, in this one: with the scripts as they are, or altered.
        private static func altered(_ mutation: Mutation?, seed: UInt64) async throws -> History {
            try await withHistoryFolder { folder in
                try await withServer { _, redis, _ in
                    let altered = AlteredRedis(redis, mutation?.guardian ?? " ", without: mutation?.without ?? " ")
                    try await withCoordinator(redis: altered) { coordinator in
                        let recorder = HistoryRecorder(path: folder + "/0")
                        try await HistoryMix(coordinator: coordinator, recorder: recorder, seed: seed)
                            .run(tasks: 8, steps: 60)
                    }
                    #expect(altered.hasReplaced == (mutation != nil))
                }
                return try History(files: [folder + "/0"])
            }
        }

        private static func expectSound(_ history: History, seed: UInt64) {
            let faults = history.faults(permits: HistoryMix.resources)
            // One leads to many.
            if !faults.isEmpty { Issue.record("seed \(seed): \(faults.prefix(3).joined(separator: "\n\n"))") }
            // They say something only if everything has happened.
            for outcome in [HistoryRecorder.Outcome.ok, .refused, .timedOut, .cancelled] {
                #expect(history.calls.contains { $0.outcome == outcome }, "seed \(seed)")
            }
            #expect(history.calls.count { $0.fence > 0 && $0.lastHeld != nil } > 50, "seed \(seed)")
        }

        @Test("of one process have an order too", arguments: 0..<3)
        func oneProcess(seed: UInt64) async throws {
            Self.expectSound(try await Self.altered(nil, seed: seed), seed: seed)
        }

        @Test("are found out when a safeguard of the scripts is missing", arguments: mutations)
        func mutated(_ mutation: Mutation) async throws {
            // What a run shows depends on who comes when; of so many, one must show it.
            var all: [String] = []
            for seed in 1...20 as ClosedRange<UInt64> {
                let faults = try await Self.altered(mutation, seed: seed).faults(permits: HistoryMix.resources)
                if faults.contains(where: { $0.contains(mutation.fault) }) { return }
                all += faults
            }
            Issue.record("nothing but \(all.map { $0.prefix(80) })")
        }
    }
}

private func withHistoryFolder<Result>(_ body: (String) async throws -> Result) async throws -> Result {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("history-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    return try await body(folder.path)
}

struct Mutation: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var guardian: String
    var without: String
    /// What the judgement says.
    var fault: String
}

private let mutations: [Mutation] = [
    Mutation(
        testDescription: "readers and writers are let in together",
        guardian: "passes = free >= wanted and (waiting == 0 or policy == OVERTAKING)", without: "passes = waiting == 0",
        fault: "no order of what was done to catalogue"),
    Mutation(
        testDescription: "a latch opens one too early", guardian: "if signalled == limit then free = OPEN end",
        without: "if signalled == limit - 1 then free = OPEN end", fault: "no order of what was done to latch"),
    Mutation(
        testDescription: "who has passed a barrier is told that it has not", guardian: "if condition == IF_WAITING and (",
        without: "if false and (", fault: "told that they had not"),
    Mutation(
        testDescription: "whoever asks is let in", guardian: "passes = free >= wanted and (waiting == 0 or policy == OVERTAKING)",
        without: "passes = waiting == 0", fault: "no order of what was done to door"),
    Mutation(
        testDescription: "whoever asks is let in, as the holders see it",
        guardian: "passes = free >= wanted and (waiting == 0 or policy == OVERTAKING)",
        without: "passes = waiting == 0", fault: "in hand of door"),
    Mutation(
        testDescription: "what is released comes back twice", guardian: "          free = free + count\n        end",
        without: "          free = free + count + count\n        end", fault: "no order of what was done to pool"),
    Mutation(
        testDescription: "what is released does not come back",
        guardian: "          free = free + count\n        end", without: "        end",
        fault: "no order of what was done to pool"),
    Mutation(
        testDescription: "a signal counts twice",
        guardian: "free, signalled, resource_changed = free + count, signalled + count, true",
        without: "free, signalled, resource_changed = free + count + count, signalled + count, true",
        fault: "no order of what was done to tokens"),
    Mutation(
        testDescription: "fences stand still", guardian: "tick = math.max(tick + 1, now)", without: "tick = tick",
        fault: "was given twice"),
    Mutation(
        testDescription: "a cancelled waiter stays in the queue",
        guardian:
            "zrem[#zrem + 1] = QUEUE_LINE .. name .. '\\0' .. priority .. encode(TICK, claim_tick) .. claim_id\n"
                + "      if mode == MEMBER",
        without: "do return {'ended', claim_state} end\n      if mode == MEMBER", fault: "no order"),
]
