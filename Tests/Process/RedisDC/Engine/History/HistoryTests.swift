// Recorded runs, checked against what their callers saw: with the scripts as they are, and without a safeguard.
import Foundation
import Hiredis
import RedisDC
import RedisDCTesting
import TestHistory
import TestRandom
import TestSupport
import Testing

@testable import RedisDCTestSupport

extension EngineTests {
    @Suite("Recorded histories", .serialized)
    struct HistoryTests {
        @Test("histories of processes with lost replies and a kill are linearizable")
        func processes() async throws {
            // scripts/stress sets a larger number.
            let rounds = ProcessInfo.processInfo.environment["REDISDC_HISTORIES"].flatMap { Int($0) } ?? 1
            let first = testSeed()
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
                        // Without the proxy, so that only the kill leaves requests without a reply.
                        let victim = try worker(4, server.port)
                        let losing = Task {
                            for count in 1... {
                                await proxy.dropNextReply(matching: "EVALSHA")
                                try await proxy.waitUntil(within: .seconds(300)) { $0.droppedReplies >= count }
                                tally(.fault)
                                // Most replies arrive.
                                let sent = proxy.counters.bytesToServer
                                try await proxy.waitUntil(within: .seconds(300)) {
                                    $0.bytesToServer > sent + 40_000
                                }
                            }
                        }
                        let path = folder + "/4"
                        try await until("the victim makes progress (seed \(seed))") {
                            let isThere = FileManager.default.fileExists(atPath: path)
                            return try isThere && History(files: [path]).calls.count > steps
                        }
                        try await victim.kill9()
                        for worker in workers { _ = try await worker.result() }
                        losing.cancel()
                        _ = await losing.result
                        #expect(proxy.counters.droppedReplies > 0)
                        try await until("the permits of the killed process are free") {
                            // A new session's heartbeats end the claims of dead sessions.
                            try await withCoordinator(redis: redis, configuration: longTTL) { coordinator in
                                try await coordinator.semaphore("pool", permits: 3)
                                    .withPermits(3, timeout: .seconds(60)) { _ in true }
                            }
                        }
                        return try History(files: (1...4).map { folder + "/\($0)" })
                    }
                }
            }
        }

        /// Records the history of one coordinator in this process, with the scripts as they are or
        /// altered.
        private static func altered(_ mutation: Mutation?, seed: UInt64) async throws -> History {
            try await withHistoryFolder { folder in
                try await withServer { _, redis, _ in
                    let altered = AlteredRedis(redis, mutation?.safeguard ?? " ", without: mutation?.replacement ?? " ")
                    try await withCoordinator(redis: altered, configuration: longTTL) { coordinator in
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
            tally(.operation, history.calls.count)
            tally(.promise, history.calls.count)
            // One fault causes many others.
            if !faults.isEmpty { Issue.record("seed \(seed): \(faults.prefix(3).joined(separator: "\n\n"))") }
            // The check is meaningful only if the history contains every outcome.
            for outcome in [HistoryRecorder.Outcome.ok, .refused, .timedOut, .cancelled] {
                #expect(history.calls.contains { $0.outcome == outcome }, "seed \(seed)")
            }
            #expect(history.calls.count { $0.fence > 0 && $0.lastHeld != nil } > 50, "seed \(seed)")
        }

        @Test("histories of one process are linearizable", arguments: testSeeds(0..<3))
        func oneProcess(seed: UInt64) async throws {
            Self.expectSound(try await Self.altered(nil, seed: seed), seed: seed)
        }

        @Test("the check finds a missing safeguard of the scripts", arguments: mutations)
        func mutated(_ mutation: Mutation) async throws {
            // A run shows the fault or not, depending on timing. One of a hundred must show it.
            var all: [String] = []
            for seed in 1...100 as ClosedRange<UInt64> {
                let faults = try await Self.altered(mutation, seed: seed).faults(permits: HistoryMix.resources)
                if faults.contains(where: { $0.contains(mutation.fault) }) { return }
                all += faults
            }
            Issue.record("expected \(mutation.fault), found only \(all.map { $0.prefix(80) })")
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
    /// The text in the scripts on one line that prevents the fault.
    var safeguard: String
    /// The text that replaces it.
    var replacement: String
    /// A part of the message of the fault.
    var fault: String
}

private let mutations: [Mutation] = [
    Mutation(
        testDescription: "readers and writers hold a lock together",
        safeguard: "passes = resource_free >= claim_count and (resource_waiting == 0 or resource_kind == 'sb')",
        replacement: "passes = resource_waiting == 0",
        fault: "no order of the operations on catalogue"),
    Mutation(
        testDescription: "a latch opens one countdown too early",
        safeguard: "if resource_signalled == resource_limit then resource_free = 1125899906842624 end",
        replacement: "if resource_signalled == resource_limit - 1 then resource_free = 1125899906842624 end",
        fault: "no order of the operations on latch"),
    Mutation(
        testDescription: "a wait that passed a barrier reports a timeout",
        safeguard: "elseif only_waiting then",
        replacement: "elseif false then", fault: "without reporting it"),
    Mutation(
        testDescription: "a mutex is granted while it is held",
        safeguard: "passes = resource_free >= claim_count and (resource_waiting == 0 or resource_kind == 'sb')",
        replacement: "passes = resource_waiting == 0", fault: "of 1 permits of door"),
    Mutation(
        testDescription: "a release returns its permits twice",
        safeguard: "resource_free, has_freed = resource_free + claim_count, true if claim_state == 'g'",
        replacement:
            "resource_free, has_freed = resource_free + claim_count + claim_count, true if claim_state == 'g'",
        fault: "no order of the operations on pool"),
    Mutation(
        testDescription: "a release returns no permits",
        safeguard: "resource_free, has_freed = resource_free + claim_count, true if claim_state == 'g'",
        replacement: "if claim_state == 'g'",
        fault: "no order of the operations on pool"),
    Mutation(
        testDescription: "a signal adds its permits twice",
        safeguard: "resource_free, resource_signalled = resource_free + count, resource_signalled + count",
        replacement: "resource_free, resource_signalled = resource_free + count + count, resource_signalled + count",
        fault: "no order of the operations on tokens"),
    Mutation(
        testDescription: "fences do not grow",
        safeguard:
            ") + 1 if not (clock_tick >= clock_now and clock_tick < 9007199254740992) then clock_tick = clock_now end",
        replacement: ")",
        fault: "was granted twice"),
    Mutation(
        testDescription: "a cancelled waiter stays in the queue",
        safeguard:
            "claim_tick) .. ending_claim_id if resource_stored then resource_waiting",
        replacement:
            "claim_tick) .. ending_claim_id do return 1 end if resource_stored then resource_waiting", fault: "no order"
    ),
]
