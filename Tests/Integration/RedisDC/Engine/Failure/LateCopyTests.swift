// Copies of requests that arrive after their retry: a lost connection may still deliver what was sent on it.
import Foundation
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import RedisDC
@testable import RedisDCTestSupport

extension LateRun {
    /// Lets the late node sweep a dead session, and recheck a resource.
    func maintenance() async throws {
        let lease = try await one.mutex("mine").lock()
        let session = try #require(try await two.inspect("mine")?.holders.first?.session)
        let dead = try await ForeignNode(observer)
        try await step("a lease of a dead session, and a name to recheck") {
            _ = try await dead.acquire("theirs")
            try await dead.expire()
            _ = try await observer.send("ZADD", "rdc:{default:0}:index", 0, "ttheirs")
            // The message calls the node, which has a second time for what another node's heartbeat has received before.
            try await until("the session is swept") {
                _ = try await observer.publish("look", to: .channel("rdc:{default:0}:wake:\(session)"))
                try await Task.sleep(for: .milliseconds(20))
                let audit = try await Audit(observer)
                return !audit.sessions.contains(dead.session) && !audit.lines.contains(Array("ttheirs".utf8))
            }
        }
        try await step("the end of the lease") { try await lease.release() }
        try await step("turns of a cohort, until it has asked for more fences") {
            let cohort = try one.mutex("turns", locality: .cohort(limit: 1_000_000, linger: .zero))
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<2 {
                    group.addTask {
                        while !late.sources.contains(Scripts.extendFences.source) {
                            try await cohort.withLock { _ in try await Task.sleep(for: .milliseconds(1)) }
                        }
                    }
                }
                try await group.waitForAll()
            }
        }
        try await step("a lock after the turns") { try await two.mutex("turns").withLock { _ in } }
    }

    func permits() async throws {
        let (mine, others) = (try one.semaphore("s", permits: 0), try two.semaphore("s", permits: 0))
        try await step("a refused tryWait") { () async throws in #expect(try await mine.tryWait() == false) }
        try await step("a signal") { try await others.signal() }
        try await step("a tryWait") { () async throws in #expect(try await mine.tryWait()) }
        try await step("signals") { try await mine.signal(2) }
        try await step("a lease") { try await one.semaphore("pool", permits: 2).acquireLease().release() }
        try await step("a wait") { try await mine.wait() }
        try await refused("a wait with several permits that times out", .timedOut) {
            try await mine.wait(2, timeout: .zero)
        }
        try await step("another signal") { try await others.signal() }
        try await step("two waits") { for _ in 0..<2 { try await mine.wait() } }
        try await step("a cancelled wait") { try await cancelled("s") { try await mine.wait() } }
        try await step("a signal after the wait") { try await others.signal() }
        try await step("another wait") { try await mine.wait() }
        try await step("a wait in the queue") {
            try await queued("s", { try await mine.wait() }, then: { try await others.signal() })
        }
        try await step("a creation") { () async throws in #expect(try await mine.create() == false) }
        try await step("a conflict") {
            let other = try one.semaphore("s", permits: 9)
            #expect(await errorOf { _ = try await other.create() }?.code == .conflict)
            #expect(await errorOf { _ = try await other.tryWait() }?.code == .conflict)
        }
        try await step("a resize") { try await mine.resize(to: 5) }
        try await step("a resize by another node") { try await others.resize(to: 3) }
        try await step("a destruction") { () async throws in #expect(try await mine.destroy()) }
        try await step("the creation that was a conflict") { () async throws in
            #expect(try await two.semaphore("s", permits: 9).create())
        }
        try await step("a semaphore that does not exist") {
            let missing = try one.existingSemaphore("missing")
            #expect(await errorOf { try await missing.signal() }?.code == .notFound)
            #expect(await errorOf { _ = try await missing.tryWait() }?.code == .notFound)
        }
        try await step("its creation") { _ = try await two.semaphore("missing", permits: 3).create() }
        let gate = try one.turnstile("gate")
        try await refused("a closed turnstile", .timedOut) { try await gate.pass(timeout: .zero) }
        try await step("an admission") { try await two.turnstile("gate").admit() }
        try await step("a passage") { try await gate.pass() }
        try await step("an open turnstile") { try await gate.unlock() }
        try await step("a passage of the open turnstile") { try await gate.pass() }
        try await step("a closed turnstile again") { try await two.turnstile("gate").lock() }
        try await step("an admission by this node") { try await gate.admit() }
        let lock = try one.readWriteLock("rw")
        let reader = try await two.readWriteLock("rw").readLock()
        try await refused("a refused writer", .timedOut) { _ = try await lock.writeLock(timeout: .zero) }
        try await step("the end of the reader") { try await reader.release() }
        let writer = try await lock.writeLock()
        try await step("a downgrade") { try await lock.downgrade(writer) }
        try await step("the end of the writer") { try await writer.release() }
    }

    func mutexes() async throws {
        let (mine, others) = (try one.mutex("m"), try two.mutex("m"))
        var lease = try await others.lock()
        try await step("a refused tryLock") { () async throws in #expect(try await mine.tryLock() == nil) }
        try await step("a release by another node") { try await lease.release() }
        try await step("a tryLock") { lease = try #require(try await mine.tryLock()) }
        try await step("a release") { try await lease.release() }
        try await step("a lock in the queue") {
            lease = try await others.lock()
            try await queued("m", { try await mine.withLock { _ in } }, then: { try await lease.release() })
        }
        try await step("a cancelled lock") {
            lease = try await others.lock()
            try await cancelled("m") { try await mine.withLock { _ in } }
        }
        try await step("a release after the cancelled lock") { try await lease.release() }
        try await step("a release by force") {
            lease = try await others.lock()
            #expect(try await mine.forceRelease())
        }
        try await step("a lock of another node after it") { lease = try await others.lock() }
        try await step("a lock of a cohort") {
            try await lease.release()
            let cohort = try one.mutex("cohort", locality: .cohort(limit: 3, linger: .zero))
            for _ in 0..<2 { try await cohort.withLock { _ in } }
        }
        try await step("a lock after the cohort") { try await two.mutex("cohort").withLock { _ in } }
        let condition = try mine.condition("c")
        try await step("a wait for a condition that times out") {
            try await mine.withLock { lease in
                #expect(await errorOf { try await condition.wait(lease, timeout: .milliseconds(1)) }?.code == .timedOut)
            }
        }
        try await step("a notification that nobody waits for") { try await condition.notify() }
        try await step("a wait for a condition") {
            try await queued(
                "m#c", { try await mine.withLock { try await condition.wait($0) } },
                then: { try await others.withLock { _ in try await others.condition("c").notify() } })
        }
    }

    func groups() async throws {
        let (mine, others) = (try one.mutex("room"), try two.mutex("room"))
        var lease = try await others.lightSwitch("a").lock()
        try await step("a refused member of another group") { () async throws in
            #expect(await errorOf { _ = try await mine.lightSwitch("b").lock(timeout: .zero) }?.code == .timedOut)
            #expect(try await mine.tryLock() == nil)
        }
        try await step("the end of the group") { try await lease.release() }
        try await step("a member") { lease = try await mine.lightSwitch("b").lock() }
        try await step("another member of the group") { try await others.lightSwitch("b").withLock { _ in } }
        try await step("the end of the members") { try await lease.release() }
        let (pool, pools) = (try one.semaphore("pool", permits: 1), try two.semaphore("pool", permits: 1))
        lease = try await pools.lightSwitch("a").lock()
        try await step("a refused permit") { () async throws in
            #expect(try await pool.tryWait() == false)
            #expect(await errorOf { _ = try await pool.acquireLease(timeout: .zero) }?.code == .timedOut)
        }
        try await step("the end of the pool's group") { try await lease.release() }
        try await step("operations on a semaphore that groups use") {
            try await pool.signal()
            try await pool.resize(to: 2)
            #expect(try await pool.create() == false)
            try await pool.wait()
            try await pool.acquireLease().release()
        }
        try await step("a resize by another node") { try await pools.resize(to: 4) }
        try await refused("a conflict", .conflict) { _ = try await one.semaphore("pool", permits: 9).create() }
        try await step("its destruction") { () async throws in #expect(try await pool.destroy()) }
        try await step("the creation that was a conflict") { () async throws in
            #expect(try await two.semaphore("pool", permits: 9).create())
        }
    }

    func latches() async throws {
        let (mine, others) = (try one.latch("start", count: 3), try two.latch("start", count: 3))
        try await step("a count") { () async throws in #expect(try await mine.countDown() == 2) }
        try await step("a count with an id") { () async throws in #expect(try await mine.countDown(id: "x") == 1) }
        try await step("a closed latch") {
            #expect(await errorOf { try await mine.wait(timeout: .zero) }?.code == .timedOut)
            #expect(await errorOf { _ = try await one.latch("start", count: 5).countDown() }?.code == .conflict)
        }
        try await step("the last count, by a participant") {
            try await queued("start", { try await mine.wait() }, then: { _ = try await others.countDown() })
        }
        try await step("an open latch") { try await mine.wait() }
        let second = try one.latch("second", count: 2)
        try await step("a participant") { try await second.withParticipation { _ in } }
        try await step("a count by another node") { _ = try await two.latch("second", count: 2).countDown() }
        try await step("a destruction") { () async throws in #expect(try await mine.destroy()) }
        try await step("the latch again") { () async throws in
            #expect(try await two.latch("start", count: 5).countDown() == 4)
        }
    }

    func meetings() async throws {
        let (mine, others) = (try one.barrier("b", parties: 2), try two.barrier("b", parties: 2))
        try await step("a party that leaves") { try await cancelled("b") { _ = try await mine.arriveAndWait() } }
        try await step("a generation") {
            try await queued(
                "b", { _ = try await mine.arriveAndWait() }, then: { _ = try await others.arriveAndWait() })
        }
        try await step("a conflict") {
            let other = try one.barrier("b", parties: 3)
            #expect(await errorOf { _ = try await other.arriveAndWait() }?.code == .conflict)
        }
        try await step("a destruction") { () async throws in #expect(try await mine.destroy()) }
        try await step("two generations") {
            for _ in 0..<2 {
                try await queued(
                    "b", { _ = try await mine.arriveAndWait() }, then: { _ = try await others.arriveAndWait() })
            }
        }
        try await step("a phaser") {
            let party = try await one.phaser("p").register()
            let other = try await two.phaser("p").register()
            try await queued(
                "p", { _ = try await party.arriveAndWait() }, then: { _ = try await other.arriveAndWait() })
            try await party.deregister()
            try await other.deregister()
        }
        try await step("an exchange") {
            let (here, there) = (try one.exchanger("e", of: Int.self), try two.exchanger("e", of: Int.self))
            try await queued(
                "e", { () async throws in #expect(try await here.exchange(1).values.sorted() == [1, 2]) },
                then: { _ = try await there.exchange(2) })
        }
        try await step("an exchange that is cancelled") {
            let here = try one.exchanger("e", of: Int.self)
            try await cancelled("e") { _ = try await here.exchange(3) }
        }
    }

    func buffers() async throws {
        let mine = try one.boundedBuffer("k", of: Int.self, capacity: 1)
        let others = try two.boundedBuffer("k", of: Int.self, capacity: 1)
        try await refused("an empty buffer", .empty) { _ = try await mine.take(timeout: .zero) }
        try await step("a put") { try await mine.put(1) }
        try await refused("a full buffer", .full) { try await mine.put(2, timeout: .zero) }
        try await step("a take by another node") { () async throws in #expect(try await others.take() == 1) }
        try await step("a put by another node") { try await others.put(3) }
        try await step("a body that throws") {
            await #expect(throws: CancellationError.self) { try await mine.withItem { _ in throw CancellationError() } }
        }
        try await step("a take") { () async throws in #expect(try await mine.take() == 3) }
        try await step("a destruction") {
            try await mine.put(4)
            #expect(try await mine.destroy())
        }
        try await step("a put after it") { try await others.put(5) }
        try await step("a take after it") { () async throws in #expect(try await mine.take() == 5) }
        try await step("a put with an id") { try await mine.put(6, id: "six") }
        try await step("its repetition") { try await mine.put(6, id: "six") }
        try await step("a take of its item") { () async throws in #expect(try await others.take() == 6) }
        try await step("a repetition after the take") { try await mine.put(6, id: "six") }
        try await step("an empty buffer after it") { () async throws in #expect(try await others.count == 0) }
    }
}

extension EngineTests.FailureTests {
    /// The operations of a family, and the scripts that they must use.
    fileprivate struct LateFamily: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var scripts: [String: RedisScript]
        var run: @Sendable (LateRun) async throws -> Void

        static let all = [
            LateFamily(
                testDescription: "maintenance",
                scripts: [
                    "heartbeat": Scripts.heartbeat, "sweep": Scripts.sweep, "end": Scripts.endPermits,
                    "recheck": Scripts.recheck, "extend fences": Scripts.extendFences,
                ]
            ) { try await $0.maintenance() },
            LateFamily(
                testDescription: "permits",
                scripts: [
                    "acquire": Scripts.acquire, "release": Scripts.release, "signal": Scripts.signal,
                    "create": Scripts.create, "resize": Scripts.resize, "turnstile": Scripts.setTurnstile,
                    "reduce": Scripts.reduce, "destroy": Scripts.destroy, "confirm": Scripts.confirm,
                    "settle a claim": Scripts.settleClaim, "settle a call": Scripts.settleCall,
                ]
            ) { try await $0.permits() },
            LateFamily(
                testDescription: "mutexes",
                scripts: [
                    "acquire": Scripts.acquire, "release a mutex": Scripts.releaseMutex, "release": Scripts.release,
                    "signal": Scripts.signal, "settle a claim": Scripts.settleClaim,
                ]
            ) { try await $0.mutexes() },
            LateFamily(
                testDescription: "groups",
                scripts: [
                    "acquire": Scripts.acquireInGroup, "release": Scripts.releaseInGroup,
                    "signal": Scripts.signalGroups, "create": Scripts.createForGroups,
                    "resize": Scripts.resizeForGroups, "settle a claim": Scripts.settleClaim,
                    "settle a call": Scripts.settleCall,
                ]
            ) { try await $0.groups() },
            LateFamily(
                testDescription: "latches",
                scripts: [
                    "wait": Scripts.waitForLatch, "count down": Scripts.countDown, "register": Scripts.participate,
                    "release": Scripts.releaseParticipant, "settle a claim": Scripts.settleClaim,
                    "settle a call": Scripts.settleCall,
                ]
            ) { try await $0.latches() },
            LateFamily(
                testDescription: "meetings",
                scripts: [
                    "arrive": Scripts.arrive, "register": Scripts.register, "release": Scripts.releaseParty,
                    "read": Scripts.read, "settle a claim": Scripts.settleClaim,
                ]
            ) { try await $0.meetings() },
            LateFamily(
                testDescription: "buffers",
                scripts: [
                    "acquire": Scripts.acquire, "pass": Scripts.pass, "read": Scripts.read,
                    "acquire for a put with an id": Scripts.acquireForPut, "pass once": Scripts.passOnce,
                    "release an item": Scripts.releaseItem, "settle a claim": Scripts.settleClaim,
                ]
            ) { try await $0.buffers() },
        ]
    }

    @Test(
        "a copy of a request that arrives late has no effect: after the retry, after other requests, after a reconnect",
        arguments: LateFamily.all)
    fileprivate func lateCopies(_ family: LateFamily) async throws {
        try await withServer { _, redis, observer in
            let late = LateRedis(redis)
            try await withCoordinator(redis: observer, configuration: longTTL) { two in
                try await withCoordinator(redis: late, configuration: longTTL) { one in
                    let run = LateRun(one: one, two: two, late: late, redis: redis, observer: observer)
                    try await family.run(run)
                    _ = try await observer.send("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
                    try await run.step("a reconnect") { _ = try await one.semaphore("last", permits: 1).create() }
                }
                let before = try await PartitionSnapshot(observer)
                try await late.deliver(to: observer, of: { $0 != Scripts.join.source }) { copy in
                    let after = try await PartitionSnapshot(observer)
                    #expect(after == before, "after the session's end, \(before.difference(to: after)): \(copy)")
                }
                // A session that has nothing, and expires.
                try await late.deliver(to: observer, of: { $0 == Scripts.join.source }) { copy in
                    let names = try await before.difference(to: PartitionSnapshot(observer))
                    #expect(names.map { $0.prefix(2) } == ["i:", "s:"], "\(names): \(copy)")
                }
                let sources = late.sources
                let session = ["join": Scripts.join, "leave": Scripts.leave]
                let missing = family.scripts.merging(session) { $1 }.filter { !sources.contains($0.value.source) }
                #expect(missing.keys.sorted() == [])
            }
        }
    }
}
