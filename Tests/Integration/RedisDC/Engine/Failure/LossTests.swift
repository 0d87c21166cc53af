// Lost sessions, data and leases, and the notifications about them.
import Foundation
import Hiredis
import RedisDC
import RedisDCTesting
import Synchronization
import TestSupport
import Testing

@testable import RedisDCTestSupport

extension EngineTests.FailureTests {
    @Test("without heartbeats the body is cancelled before Redis grants the lock to another session")
    func partition() async throws {
        // The body is cancelled a tenth of this before Redis releases the lock. This is enough on a busy machine too.
        var configuration = CoordinatorConfiguration()
        configuration.ttl = .seconds(8)
        try await withProxiedCoordinator(configuration: configuration) { proxy, proxied, other, _ in
            let events = proxied.events()
            let (entered, entering) = AsyncStream.makeStream(of: UInt64.self)
            let ended = Ended()
            let holder = Task {
                try await proxied.mutex("m").withLock { lease in
                    entering.yield(lease.fence)
                    // Until it is cancelled.
                    try? await Task.sleep(for: .seconds(60))
                    #expect(!lease.isHeld)
                    ended.set()
                }
            }
            var fences = entered.makeAsyncIterator()
            let fence = await fences.next()!
            await proxy.stall()
            let successor = try await other.mutex("m").lock(timeout: .seconds(120))
            #expect(ended.isSet)
            #expect(successor.fence > fence)
            await proxy.heal()
            #expect(await errorOf { try await holder.value }?.code == .lost)
            for await event in events {
                if case .sessionLost(_, let reason) = event {
                    #expect(reason == .expired)
                    break
                }
            }
            // The coordinator continues with a new session.
            try await successor.release()
            try await proxied.mutex("m").withLock(timeout: .seconds(30)) { #expect($0.fence > successor.fence) }
        }
    }

    @Test("a waiter queues again after its session was lost")
    func waiterSurvivesLoss() async throws {
        try await withProxiedCoordinator(configuration: shortTTL) { proxy, proxied, other, redis in
            let waiting = Task { try await proxied.semaphore("s", permits: 0).wait(timeout: .seconds(60)) }
            try await until("the waiter is queued") { try await other.inspect("s")?.waiterCount == 1 }
            let first = try #require(try await other.inspect("s")?.waiters.first?.session)
            await proxy.stall()
            try await until("the session has ended") { try await !Audit(redis).sessions.contains(first) }
            #expect(try await other.inspect("s")?.waiterCount == 0)
            await proxy.heal()
            try await until("the waiter is queued again") { try await other.inspect("s")?.waiterCount == 1 }
            try await other.semaphore("s", permits: 0).signal()
            try await waiting.value
        }
    }

    @Test("a wake-up that was not counted for the present connection is not believed")
    func foreignWakeUp() async throws {
        try await withProxiedCoordinator { proxy, proxied, other, redis in
            let held = try await other.mutex("m").lock()
            let waiting = Task { try await proxied.mutex("m").lock(timeout: .seconds(60)) }
            try await until("the waiter is queued") { try await other.inspect("m")?.waiterCount == 1 }
            let waiter = try #require(try await Audit(redis).claims.first { $0.value.state == "w" })
            let parts = waiter.key.split(separator: ":")
            await proxy.cutAll()
            let script = RedisScript(
                "return math.floor(select(2, struct.unpack('<dd', redis.call('HGET', KEYS[1], ARGV[1]))) / 2^32)")
            try await until("notices are counted for the next connection") {
                try await redis.script(script, keys: ["rdc:{default:0}:book"], arguments: [.string("s:\(parts[0])")])
                    .integer == 1
            }
            let channel = "rdc:{default:0}:wake:\(parts[0])"
            try await until("the channel is subscribed again") {
                try await redis.send("PUBLISH", .string(channel), .string("1 \(parts[2]) 7")).integer == 1
            }
            try await held.release()
            let lease = try await waiting.value
            #expect(lease.fence > held.fence)
            try await lease.release()
        }
    }

    @Test("after FLUSHALL holders lose their leases and waiters queue again")
    func flushAll() async throws {
        try await withCoordinators(configuration: mediumTTL) { _, one, two, redis in
            let events = one.events()
            let lease = try await one.mutex("m").lock()
            let waiting = Task { try await two.mutex("m").lock(timeout: .seconds(60)) }
            try await until("the waiter is queued") { try await one.inspect("m")?.waiterCount == 1 }
            let (lost, losing) = AsyncStream.makeStream(of: RedisDCError.self)
            lease.onLoss { losing.yield($0) }
            _ = try await redis.send("FLUSHALL")
            var losses = lost.makeAsyncIterator()
            #expect(await losses.next()?.code == .lost)
            #expect(!lease.isHeld)
            #expect(await errorOf { try lease.check() }?.code == .lost)
            let successor = try await waiting.value
            #expect(successor.fence > lease.fence)
            #expect(await errorOf { try await lease.release() }?.code == .lost)
            #expect(successor.isHeld)
            var reasons: [SessionLoss] = []
            for await event in events {
                if case .sessionLost(_, let reason) = event { reasons.append(reason) }
                if case .dataLost = event { break }
            }
            #expect(reasons == [.dataLost])
            try await successor.release()
        }
    }

    @Test("a restart that keeps the data loses no lease, one that does not is noticed")
    func restart() async throws {
        for persistence in [LocalRedis.Configuration.Persistence.appendOnly(fsync: .always), .none] {
            var configuration = CoordinatorConfiguration()
            configuration.ttl = .seconds(60)
            try await withCoordinators(.init(persistence: persistence), configuration: configuration) {
                server, one, two, redis in
                let lease = try await one.mutex("m").lock()
                let semaphore = try two.semaphore("s", permits: 0)
                let waiting = Task { try await semaphore.wait(timeout: .seconds(60)) }
                try await until("the waiter is queued") { try await two.inspect("s")?.waiterCount == 1 }
                await server.kill()
                try await server.restart()
                if persistence == .none {
                    try await until("the loss is noticed") { !lease.isHeld }
                }
                try await one.semaphore("s", permits: 0).signal()
                try await waiting.value
                if persistence != .none {
                    #expect(lease.isHeld)
                    try await lease.release()
                    try await Audit(redis).check()
                }
            }
        }
    }

    @Test("forceRelease notifies the holder and grants the lock to the next waiter")
    func forceRelease() async throws {
        try await withCoordinators { _, one, two, _ in
            let lease = try await one.mutex("m").lock()
            let waiting = Task { try await two.mutex("m").lock() }
            try await until("the waiter is queued") { try await one.inspect("m")?.waiterCount == 1 }
            #expect(try await two.mutex("m").forceRelease())
            let successor = try await waiting.value
            try await until("the holder is notified") { !lease.isHeld }
            #expect(await errorOf { try await lease.release() }?.code == .lost)
            #expect(successor.isHeld)
            try await successor.release()
            #expect(try await two.mutex("m").forceRelease() == false)
        }
    }

    @Test("the release of a lease that was taken away fails, also when the holder was not notified before")
    func releaseTooLate() async throws {
        // No wake-up and no heartbeat comes in between.
        var silent = CoordinatorConfiguration()
        (silent.usesWakeUps, silent.ttl) = (false, .seconds(600))
        try await withCoordinators(configuration: silent) { _, one, two, _ in
            let leases = [
                try await one.mutex("m").lock(), try await one.semaphore("s", permits: 3).acquireLease(2),
                try await one.readWriteLock("rw").readLock(), try await one.readWriteLock("w").writeLock(),
            ]
            for lease in leases { #expect(try await two.forceRelease(lease.name) == 1) }
            for lease in leases {
                #expect(lease.isHeld, "the holder must not have been notified")
                #expect(await errorOf { try await lease.release() }?.code == .lost, "\(lease.name)")
            }
            // The next holder is not affected.
            let next = try await two.mutex("m").lock()
            #expect(await errorOf { try await leases[0].release() } == nil, "a second release does nothing")
            #expect(try await one.mutex("m").tryLock() == nil)
            try await next.release()
        }
    }

    @Test(
        "without wake-ups a waiter learns that its semaphore was destroyed, and a holder that its lease was taken away")
    func withoutWakeUps() async throws {
        var silent = shortTTL
        silent.usesWakeUps = false
        try await withCoordinators(configuration: silent) { _, one, two, _ in
            let semaphore = try one.semaphore("s", permits: 0)
            let waiting = Task { await errorOf { try await semaphore.wait() } }
            try await until("the waiter is queued") { try await two.inspect("s")?.waiterCount == 1 }
            try await two.semaphore("s", permits: 0).destroy()
            #expect(await waiting.value?.code == .destroyed)
            let lease = try await one.mutex("m").lock()
            #expect(try await two.mutex("m").forceRelease())
            try await until("the holder is notified") { !lease.isHeld }
        }
    }

    @Test("a coordinator that ends releases its leases at once")
    func cleanEnd() async throws {
        try await withServer { _, redis, other in
            try await withCoordinator(redis: other, configuration: longTTL) { stays in
                let waiting = try await withCoordinator(redis: redis, configuration: longTTL) { goes in
                    _ = try await goes.semaphore("s", permits: 3).acquireLease(3)
                    let mutex = try await goes.mutex("m").lock()
                    let waiting = Task { try await stays.mutex("m").lock() }
                    try await until("the waiter is queued") { try await stays.inspect("m")?.waiterCount == 1 }
                    withExtendedLifetime(mutex) {}
                    return waiting
                }
                try await waiting.value.release()
                #expect(try await stays.semaphore("s", permits: 3).value == 3)
                let audit = try await Audit(redis)
                audit.check()
                #expect(audit.claims.isEmpty && audit.sessions.count == 1)
            }
        }
    }
}

private final class Ended: Sendable {
    private let flag = Atomic(false)
    func set() { flag.store(true, ordering: .releasing) }
    var isSet: Bool { flag.load(ordering: .acquiring) }
}
