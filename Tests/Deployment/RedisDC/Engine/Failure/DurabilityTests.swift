// Grants and signals that wait for a replica, with a real one that is cut off, or promoted, or for the disk.
import Foundation
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import RedisDC
@testable import RedisDCTestSupport

/// Runs `body` with two coordinators that use the servers.
private func withPair(
    _ configure: (inout CoordinatorConfiguration) -> Void = { _ in },
    _ body: (ReplicatedServers, _ one: Coordinator, _ two: Coordinator) async throws -> Void
) async throws {
    var configuration = CoordinatorConfiguration()
    // A machine that stands still for some seconds ends no session, and is no reason for a refusal.
    configuration.ttl = .seconds(20)
    configuration.durabilityTimeout = .seconds(20)
    configure(&configuration)
    try await withReplicatedServers { pair in
        try await withTestClient(url: pair.url) { first in
            try await withTestClient(url: pair.url) { second in
                try await withCoordinator(redis: first, configuration: configuration) { one in
                    try await withCoordinator(redis: second, configuration: configuration) { two in
                        try await body(pair, one, two)
                    }
                }
            }
        }
    }
}

private func expectRefusal(_ code: RedisDCError.Code, _ body: () async throws -> Void) async {
    do {
        try await body()
        Issue.record("expected .\(code)")
    } catch {
        #expect((error as? RedisDCError)?.code == code)
    }
}

extension EngineTests.FailureTests {
    @Suite("Grants and signals that a replica confirms", .serialized, .timeLimit(.minutes(5)))
    struct DurabilityTests {
        @Test("a lease that a replica has confirmed is held on the promoted replica, and nobody else gets the lock")
        func grant() async throws {
            try await withPair { pair, one, two in
                let lease = try await one.mutex("free").lock(durability: .replicated(1))
                // This one is granted by the release of another process.
                let held = try await two.mutex("passed").lock()
                let waiting = Task { try await one.mutex("passed").lock(durability: .replicated(1)) }
                try await until("the waiter is queued") { try await two.inspect("passed")?.waiterCount == 1 }
                try await held.release()
                let passed = try await waiting.value
                // Without more words to the replica: what it has now is what was confirmed.
                try await withTestClient(url: pair.replica.url) { _ = try await $0.send("REPLICAOF", "NO", "ONE") }
                await pair.promote()
                for name in ["free", "passed"] {
                    #expect(try await two.mutex(name).tryLock() == nil)
                    try await until("the holder is there") { (try? await one.inspect(name))?.holders.count == 1 }
                }
                try await lease.release()
                try await passed.release()
            }
        }

        @Test("a lease that no replica confirms is released, or kept if the caller says so")
        func notConfirmed() async throws {
            try await withPair {
                $0.durabilityTimeout = .milliseconds(200)
            } _: { pair, one, two in
                try await pair.cutReplication()
                let mutex = try one.mutex("m")
                let error = await errorOf { _ = try await mutex.lock(durability: .replicated(1)) }
                #expect(error?.code == .notDurable)
                #expect(error?.message.hasSuffix("the lease was released") == true, "\(error?.message ?? "")")
                await expectRefusal(.notDurable) { _ = try await mutex.tryLock(durability: .replicated(1)) }
                await expectRefusal(.notDurable) {
                    try await mutex.withLock(durability: .replicated(1)) { _ in _ = Issue.record("the body runs") }
                }
                let seats = try one.semaphore("seats", permits: 2)
                await expectRefusal(.notDurable) { _ = try await seats.acquireLease(2, durability: .replicated(1)) }
                let book = try one.readWriteLock("book")
                await expectRefusal(.notDurable) { _ = try await book.writeLock(durability: .replicated(1)) }
                await expectRefusal(.notDurable) { _ = try await book.readLock(durability: .replicated(1)) }
                // All of it is free.
                #expect(try await two.semaphore("seats", permits: 2).value == 2)
                try await two.readWriteLock("book").writeLock(timeout: .seconds(60)).release()
                try await two.mutex("m").lock(timeout: .seconds(60)).release()

                try await mutex.withLock { lease in
                    await expectRefusal(.notDurable) {
                        try await lease.makeDurable(.replicated(1), timeout: .milliseconds(50))
                    }
                    #expect(lease.isHeld)
                    let other = try await two.mutex("m").tryLock()
                    #expect(other == nil)
                }
            }
        }

        @Test("a confirmed signal is there after a promotion; one that is not confirmed has taken effect, and says so")
        func signal() async throws {
            try await withPair {
                $0.repairTime = .zero
            } _: { pair, one, two in
                let semaphore = try one.semaphore("s", permits: 0)
                try await semaphore.signal(3, durability: .replicated(1))
                try await withTestClient(url: pair.replica.url) { _ = try await $0.send("REPLICAOF", "NO", "ONE") }
                let cancelled = Task { try await semaphore.signal(4, durability: .replicated(1)) }
                try await until("the signal has taken effect") { try await semaphore.value == 7 }
                cancelled.cancel()
                let error = await errorOf { try await cancelled.value }
                #expect(error?.code == .cancelled && error?.mayHaveRun == true)
                await pair.promote()
                var value: Int?
                // Not on the connection that was cut.
                try await until("the value is read") {
                    value = try? await two.semaphore("s", permits: 0).value
                    return value != nil
                }
                #expect(value == 3)
            }
        }

        @Test(
            "a grant or a signal with `.fsynced` returns when it is on the disk, and not before",
            .needs(command: "waitaof")
        )
        func fsyncedDurability() async throws {
            try await withServer(.init(persistence: .appendOnly(fsync: .everySecond))) { _, redis, other in
                var configuration = longTTL
                configuration.durabilityTimeout = .seconds(60)
                try await withCoordinator(redis: redis, configuration: configuration) { coordinator in
                    try await coordinator.mutex("m").withLock(durability: .fsynced) { lease in #expect(lease.isHeld) }
                    try await coordinator.semaphore("s", permits: 0).signal(durability: .fsynced)
                    try await coordinator.semaphore("t", permits: 2).withPermit(durability: .fsynced) { _ in }
                    let lease = try await coordinator.mutex("later").lock()
                    try await lease.makeDurable(.fsynced)
                    #expect(try await coordinator.inspect("s")?.available == 1)
                }
                // From now on nothing is known to be on the disk.
                _ = try await other.send("CONFIG", "SET", "appendfsync", "no")
                configuration.durabilityTimeout = .milliseconds(300)
                try await withCoordinator(redis: redis, configuration: configuration) { coordinator in
                    let mutex = try coordinator.mutex("m")
                    let error = await errorOf { _ = try await mutex.lock(durability: .fsynced) }
                    #expect(error?.code == .notDurable)
                    // It has been released.
                    try await mutex.lock(timeout: .seconds(60)).release()
                    let semaphore = try coordinator.semaphore("s", permits: 0)
                    let signal = await errorOf { try await semaphore.signal(durability: .fsynced) }
                    #expect(signal?.code == .notDurable && signal?.mayHaveRun == true)
                    #expect(try await coordinator.inspect("s")?.available == 2)
                }
            }
        }

        @Test("a caller that is cancelled while it waits for a replica holds nothing")
        func cancelled() async throws {
            try await withPair { pair, one, two in
                try await pair.cutReplication()
                let waiting = Task { try await one.mutex("m").lock(durability: .replicated(1)) }
                try await until("the lock is held") { try await two.inspect("m")?.holders.count == 1 }
                waiting.cancel()
                await expectRefusal(.cancelled) { _ = try await waiting.value }
                try await two.mutex("m").lock(timeout: .seconds(60)).release()
            }
        }

        @Test("a thousand callers at once share a few connections")
        func many() async throws {
            try await withPair { pair, one, _ in
                let semaphore = try one.semaphore("s", permits: 1000)
                var most = 0
                try await withThrowingTaskGroup(of: Lease.self) { group in
                    for _ in 0..<1000 {
                        group.addTask { try await semaphore.acquireLease(durability: .replicated(1)) }
                    }
                    var leases: [Lease] = []
                    for try await lease in group {
                        leases.append(lease)
                        if leases.count.isMultiple(of: 100) { most = max(most, try await waitingConnections(of: pair)) }
                    }
                    #expect(try await semaphore.value == 0)
                    for lease in leases { try await lease.release() }
                }
                #expect((1...4).contains(most))
                #expect(try await semaphore.value == 1000)
            }
        }

        @Test("a server that lacks the grant confirms nothing, although its own replica has all that it has")
        func otherServer() async throws {
            try await withPair {
                $0.durabilityTimeout = .milliseconds(500)
            } _: { pair, one, _ in
                let following = LocalRedis.Configuration(
                    extra: ["replicaof 127.0.0.1 \(pair.replica.port)"], waitUntilLoaded: false)
                try await withLocalRedis(following) { third in
                    try await pair.cutReplication()
                    let lease = try await one.mutex("m").lock()
                    try await withTestClient(url: third.url) { redis in
                        try await until("it follows") {
                            try await redis.send("INFO", "replication").string?.contains("master_link_status:up")
                                == true
                        }
                    }
                    // New connections lead to the other server, and the present one stays.
                    await pair.proxy.redirect(to: .port(pair.replica.port))
                    await expectRefusal(.notDurable) { try await lease.makeDurable(.replicated(1)) }
                    #expect(lease.isHeld)
                }
            }
        }

        /// The number of connections that wait for replicas, or have done so last.
        private func waitingConnections(of pair: ReplicatedServers) async throws -> Int {
            try await withTestClient(url: pair.server.url) { redis in
                let list = try await redis.send("CLIENT", "LIST", "TYPE", "normal").string ?? ""
                return list.split(separator: "\n").count { $0.contains(" cmd=wait ") }
            }
        }

        @Test("a turn of a cohort waits for the claim of its process")
        func cohort() async throws {
            try await withPair { pair, one, two in
                let mutex = try one.mutex("m", locality: .cohort())
                for _ in 0..<3 { try await mutex.withLock(durability: .replicated(1)) { #expect($0.isHeld) } }
                let lease = try await mutex.lock(durability: .replicated(1))
                try await withTestClient(url: pair.replica.url) { _ = try await $0.send("REPLICAOF", "NO", "ONE") }
                await pair.promote()
                #expect(try await two.mutex("m", locality: .cohort()).tryLock() == nil)
                try await lease.release()
            }
        }
    }
}
