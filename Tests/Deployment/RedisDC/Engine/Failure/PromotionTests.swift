// A replica that lacks the last writes is promoted, and everybody moves to it.
import Foundation
import Hiredis
import NIOConcurrencyHelpers
import RedisDCTesting
import TestRandom
import TestSupport
import Testing

@testable import RedisDC
@testable import RedisDCTestSupport

/// Runs `body` with two coordinators that use the servers, and a client of the replica.
private func withPair(
    _ body: (ReplicatedServers, _ one: Coordinator, _ two: Coordinator, _ replica: RedisClient) async throws -> Void
) async throws {
    var configuration = CoordinatorConfiguration()
    // A machine that stands still for some seconds ends no session.
    configuration.ttl = .seconds(20)
    try await withReplicatedServers { pair in
        try await withTestClient(url: pair.url) { first in
            try await withTestClient(url: pair.url) { second in
                try await withCoordinator(redis: first, configuration: configuration) { one in
                    try await withCoordinator(redis: second, configuration: configuration) { two in
                        try await withTestClient(url: pair.replica.url) { try await body(pair, one, two, $0) }
                    }
                }
            }
        }
    }
}

extension EngineTests.FailureTests {
    @Suite("The promotion of a replica that lacks the last writes", .serialized, .timeLimit(.minutes(5)))
    struct PromotionTests {
        @Test("a holder whose grant is lost is notified, and a permit whose release is lost becomes free again")
        func grant() async throws {
            try await withPair { pair, one, two, replica in
                let events = one.events()
                // At the time of the replica, one waits for what two holds.
                let held = try await two.mutex("m").lock()
                let waiting = Task { try await one.mutex("m").lock() }
                try await until("the waiter is queued") { try await two.inspect("m")?.waiterCount == 1 }
                try await pair.cutReplication()
                try await held.release()
                let lease = try await waiting.value
                #expect(lease.isHeld)
                await pair.promote()
                try await until("the holder is notified") { !lease.isHeld }
                #expect(await errorOf { try lease.check() }?.code == .lost)
                for await event in events { if case .dataLost = event { break } }
                // The claims of the old holder and of the old waiter, which the new server still has, end.
                let next = try await one.mutex("m").lock(timeout: .seconds(60))
                #expect(next.fence > lease.fence)
                try await next.release()
                try await until("nothing is left") { try await Audit(replica).claims.isEmpty }
            }
        }

        @Test("a permit that was consumed is not handed out again, although its confirmation is lost")
        func consumed() async throws {
            try await withPair { pair, one, two, replica in
                let semaphore = try one.semaphore("s", permits: 0)
                let waiting = Task { try await semaphore.wait() }
                try await until("the waiter is queued") { try await two.inspect("s")?.waiterCount == 1 }
                // The permit is granted at the time of the replica, and confirmed later.
                await pair.proxy.stall(.toClient)
                try await withTestClient(url: pair.server.url) { direct in
                    try await withCoordinator(redis: direct, configuration: longTTL) {
                        try await $0.semaphore("s", permits: 0).signal()
                    }
                }
                try await pair.cutReplication()
                await pair.proxy.unstall(.toClient)
                try await waiting.value
                try await withTestClient(url: pair.server.url) { direct in
                    try await until("the receipt is confirmed") {
                        try await Audit(direct).claims.values.allSatisfy { $0.state != "g" }
                    }
                }
                #expect(try await Audit(replica).claims.values.contains { $0.state == "g" })
                await pair.promote()
                try await until("the receipt is confirmed again") {
                    try await Audit(replica).claims.values.allSatisfy { $0.state != "g" }
                }
                let audit = try await Audit(replica)
                #expect(audit.resources["s"]?.free == 0 && audit.resources["s"]?.consumed == 1)
            }
        }

        @Test("what is lost is repeated before anything new is sent: of two resizes the later one counts")
        func order() async throws {
            try await withPair { pair, one, two, _ in
                let events = one.events()
                let semaphore = try one.semaphore("s", permits: 1)
                try await semaphore.create()
                try await pair.cutReplication()
                try await semaphore.resize(to: 5)
                await pair.promote()
                try await semaphore.resize(to: 7)
                for await event in events { if case .repaired = event { break } }
                #expect(try await two.semaphore("s", permits: 1).value == 7)
            }
        }

        @Test("a lost signal is repeated, before a later request uses the same slot")
        func signal() async throws {
            try await withPair { pair, one, two, replica in
                let events = one.events()
                let semaphore = try one.semaphore("s", permits: 0)
                try await semaphore.signal()
                try await pair.cutReplication()
                try await semaphore.signal(5)
                await pair.promote()
                // It takes the slot in which the lost signal was.
                try await semaphore.signal(10)
                for await event in events {
                    if case .repaired(let operations) = event {
                        #expect(operations == 1)
                        break
                    }
                }
                #expect(try await Audit(replica).resources["s"]?.free == 16)
            }
        }

        @Test("what a thousand callers of two processes have done at once is repeated, each in its slot, once")
        func thousandSignals() async throws {
            try await withPair { pair, one, two, _ in
                let (eventsOfOne, eventsOfTwo) = (one.events(), two.events())
                let names = (0..<40).map { "s\($0)" }
                for name in names { try await one.semaphore(name, permits: 0).create() }
                try await pair.cutReplication()
                // Semaphore k is signalled by 25 callers, of which every fifth adds two permits.
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for number in 0..<1000 {
                        let coordinator = number.isMultiple(of: 2) ? one : two
                        let semaphore = try coordinator.semaphore(names[number % 40], permits: 0)
                        group.addTask { try await semaphore.signal((number / 40).isMultiple(of: 5) ? 2 : 1) }
                    }
                    try await group.waitForAll()
                }
                await pair.promote()
                var repaired = 0
                for await event in eventsOfOne {
                    if case .repaired(let operations) = event { repaired += operations } else { continue }
                    break
                }
                for await event in eventsOfTwo {
                    if case .repaired(let operations) = event { repaired += operations } else { continue }
                    break
                }
                #expect(repaired == 1000)
                for name in names { #expect(try await two.inspect(name)?.available == 30, "\(name)") }
            }
        }

        @Test("the lost release of a mutex is repeated by a process that does nothing else")
        func release() async throws {
            try await withPair { pair, one, two, replica in
                let events = one.events()
                let lease = try await one.mutex("m").lock()
                try await pair.cutReplication()
                try await lease.release()
                await pair.promote()
                for await event in events { if case .repaired = event { break } }
                let next = try await two.mutex("m").lock(timeout: .seconds(60))
                #expect(next.fence > lease.fence)
                try await next.release()
            }
        }

        @Test(
            "of two holders at the same time, one is notified of its loss, and fences differ", .timeLimit(.minutes(5)),
            arguments: testSeeds(0..<4))
        func random(seed: UInt64) async throws {
            try await withPair { pair, one, two, replica in
                let turns = NIOLockedValueBox<[Turn]>([])
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for (number, node) in [one, two, one, two].enumerated() {
                        group.addTask {
                            var generator = SplitMix(seed: seed + UInt64(number))
                            let mutex = try node.mutex("m")
                            while !Task.isCancelled {
                                let pause = Int.random(in: 0...3000, using: &generator)
                                guard let lease = try? await mutex.lock(timeout: .seconds(60)) else { continue }
                                var turn = Turn(node: number % 2, fence: lease.fence, start: .now, end: .now)
                                try? await Task.sleep(for: .microseconds(pause))
                                turn.isNotified = !lease.isHeld
                                turn.end = .now
                                do { try await lease.release() } catch { turn.isNotified = true }
                                turns.withLockedValue { [turn] in $0.append(turn) }
                            }
                        }
                    }
                    var generator = SplitMix(seed: seed)
                    try await until("there are turns") { turns.withLockedValue { $0.count } > 20 }
                    try await pair.cutReplication()
                    let wanted = turns.withLockedValue { $0.count } + Int.random(in: 0...50, using: &generator)
                    try await until("the tail has turns") { turns.withLockedValue { $0.count } >= wanted }
                    await pair.promote()
                    let after = turns.withLockedValue { $0.count } + 100
                    try await until("the new server has turns") { turns.withLockedValue { $0.count } >= after }
                    group.cancelAll()
                }
                let all = turns.withLockedValue { $0 }
                for (first, second) in Turn.overlaps(all) {
                    #expect(first.isNotified || second.isNotified, "seed \(seed): \(first) and \(second)")
                }
                let fences = all.sorted { $0.start < $1.start }.map(\.fence)
                #expect(Set(fences).count == fences.count, "seed \(seed)")
            }
        }
    }
}

private struct Turn: Sendable {
    var node: Int
    var fence: UInt64
    var start: ContinuousClock.Instant
    var end: ContinuousClock.Instant
    /// Whether the holder was notified that it no longer held the lock.
    var isNotified = false

    /// Turns that were in at the same time.
    static func overlaps(_ turns: [Turn]) -> [(Turn, Turn)] {
        let sorted = turns.sorted { $0.start < $1.start }
        return zip(sorted, sorted.dropFirst()).filter { $1.start < $0.end }.map { ($0, $1) }
    }
}
