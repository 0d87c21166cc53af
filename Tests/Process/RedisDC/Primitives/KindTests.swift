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
