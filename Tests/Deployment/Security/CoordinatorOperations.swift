// Every public operation of a coordinator and its primitives, by one user of the server.
import Hiredis
import RedisDC
import TestKinds
import TestSupport
import Testing

/// Runs every public operation of RedisDC in one namespace.
struct CoordinatorOperations {
    let url: String
    let namespace: String
    /// Another user, who breaks connections.
    let admin: RedisClient

    private let short = Duration.milliseconds(20)

    func run() async throws {
        var configuration = CoordinatorConfiguration()
        // A heartbeat of this coordinator sweeps the dead session in `sweep`.
        configuration.ttl = .seconds(6)
        try await withRedisClient(url: url) { redis in
            try await withCoordinator(redis: redis, namespace: namespace, configuration: configuration) { coordinator in
                try await withRedisClient(url: url) { second in
                    try await withCoordinator(redis: second, namespace: namespace) { other in
                        try await semaphores(coordinator, other)
                        try await durabilities(coordinator)
                        try await mutexes(coordinator, other)
                        try await readWriteLocks(coordinator)
                        try await conditions(coordinator, other)
                        try await lightSwitches(coordinator)
                        try await meetings(coordinator, other)
                        try await latches(coordinator)
                        try await buffers(coordinator, other)
                        try await rateLimiters(coordinator)
                        try await elections(coordinator)
                        try await views(coordinator)
                        try await uses(coordinator)
                    }
                }
                try await reconnect(coordinator)
                try await sweep(coordinator)
            }
        }
    }

    /// The server has no replica.
    private func durabilities(_ coordinator: Coordinator) async throws {
        do throws(RedisDCError) {
            try await coordinator.semaphore("confirmed", permits: 0).signal(durability: .replicated(1))
        } catch {
            #expect(error.code == .notDurable && !error.message.contains("NOPERM"), "\(error.message)")
        }
    }

    private func semaphores(_ coordinator: Coordinator, _ other: Coordinator) async throws {
        try await coordinator.semaphore("existing", permits: 1).create()
        try await other.existingSemaphore("existing").wait()
        for fairness in [Fairness.fifo, .barging] {
            let empty = try coordinator.semaphore("permits", permits: 0, fairness: fairness)
            #expect(try await empty.create())
            async let waiting: Void = empty.wait(timeout: .seconds(60))
            try await until("the wait is queued") { try await coordinator.inspect("permits")?.waiterCount == 1 }
            try await other.semaphore("permits", permits: 0, fairness: fairness).signal()
            try await waiting
            try await empty.signal(5)
            try await empty.wait()
            try await empty.wait(2)
            #expect(try await empty.tryWait())
            #expect(try await empty.value == 1)
            try await empty.resize(to: 3)
            let semaphore = try coordinator.semaphore("permits", permits: 3, fairness: fairness)
            #expect(try await semaphore.create() == false)
            try await semaphore.withPermit { _ in }
            try await semaphore.withPermits(2) { _ in }
            let lease = try await semaphore.acquireLease()
            try lease.check()
            try await lease.release()
            #expect(try await semaphore.tryWait(1_000_000) == false)
            #expect(await code { try await semaphore.wait(100, timeout: short) } == .timedOut)
            let cancelled = Task { try await semaphore.wait(100) }
            try await until("the wait is queued") { try await coordinator.inspect("permits")?.waiterCount == 1 }
            cancelled.cancel()
            #expect(await code { try await cancelled.value } == .cancelled)
            let destroyed = Task { try await semaphore.wait(100) }
            try await until("the wait is queued") { try await coordinator.inspect("permits")?.waiterCount == 1 }
            #expect(try await semaphore.destroy())
            #expect(await code { try await destroyed.value } == .destroyed)
        }
    }

    private func mutexes(_ coordinator: Coordinator, _ other: Coordinator) async throws {
        for locality in [Locality.strict, .cohort(limit: 2, linger: .milliseconds(5))] {
            let mutex = try coordinator.mutex("mutex", locality: locality)
            let rival = try other.mutex("mutex", locality: locality)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for each in [mutex, rival, mutex, rival] {
                    group.addTask { for _ in 0..<5 { try await each.withLock { _ in } } }
                }
                try await group.waitForAll()
            }
            let lease = try await mutex.lock()
            #expect(try await rival.tryLock() == nil)
            #expect(await code { _ = try await rival.lock(timeout: short) } == .timedOut)
            #expect(try await other.mutex("mutex").forceRelease())
            try await until("the lease is lost") { !lease.isHeld }
            let successor = try await rival.lock()
            #expect(try await coordinator.forceRelease("mutex") == 1)
            try await until("the lease is lost") { !successor.isHeld }
            try? await successor.release()
            try await mutex.tryLock()?.release()
        }
        let reentrant = try coordinator.mutex("reentrant", isReentrant: true)
        try await reentrant.withLock { _ in try await reentrant.withLock { _ in } }
        try await coordinator.withLocks([coordinator.mutex("m"), coordinator.mutex("n")]) { _ in }
    }

    private func readWriteLocks(_ coordinator: Coordinator) async throws {
        for policy in [ReadWriteLock.Policy.fifo, .preferReaders, .preferWriters] {
            let lock = try coordinator.readWriteLock("read-write \(policy)", policy: policy)
            try await lock.withReadLock { _ in
                #expect(await code { _ = try await lock.writeLock(timeout: short) } == .timedOut)
            }
            try await lock.withWriteLock { _ in }
            try await lock.readLock().release()
            let writer = try await lock.writeLock()
            let reading = Task { try await lock.readLock().release() }
            try await until("the reader is queued") { try await coordinator.inspect(lock.name)?.waiterCount == 1 }
            try await lock.downgrade(writer)
            try await reading.value
            try await writer.release()
        }
    }

    private func conditions(_ coordinator: Coordinator, _ other: Coordinator) async throws {
        let mutex = try coordinator.mutex("conditional")
        let condition = try mutex.condition("changed")
        #expect(
            await code { try await mutex.withLock { try await condition.wait($0, timeout: short) } } == .timedOut)
        for notifiesAll in [false, true] {
            let waiting = Task { try await mutex.withLock { try await condition.wait($0) } }
            try await until("the wait is queued") { try await coordinator.inspect(condition.name)?.waiterCount == 1 }
            let same = try other.mutex("conditional").condition("changed")
            if notifiesAll { try await same.notifyAll() } else { try await same.notify() }
            try await waiting.value
        }
    }

    private func lightSwitches(_ coordinator: Coordinator) async throws {
        let room = try coordinator.mutex("room")
        for group in ["readers", "writers"] {
            try await room.lightSwitch(group).withLock { _ in
                #expect(await code { _ = try await room.lock(timeout: short) } == .timedOut)
            }
        }
        try await coordinator.semaphore("lit", permits: 1).lightSwitch("group").lock().release()
        let held = try await room.lightSwitch("readers").lock()
        #expect(try await coordinator.forceRelease("room") == 1)
        try await until("the lease is lost") { !held.isHeld }
    }

    private func meetings(_ coordinator: Coordinator, _ other: Coordinator) async throws {
        for failure in [Barrier.Failure.removesParty, .breaks] {
            let name = "barrier \(failure)"
            let barriers = try [coordinator, other].map { try $0.barrier(name, parties: 2, failure: failure) }
            async let first = barriers[0].arriveAndWait()
            async let second = barriers[1].arriveAndWait()
            _ = try await (first, second)
            #expect(await code { _ = try await barriers[0].arriveAndWait(timeout: short) } != .notPermitted)
            #expect(try await barriers[1].destroy())
        }
        try await coordinator.doubleBarrier("double", parties: 1).run {}
        let phaser = try coordinator.phaser("phaser")
        let party = try await phaser.register()
        _ = try await party.arriveAndWait()
        try await party.deregister()
        try await phaser.withParty { _ = try await $0.arriveAndWait() }
        let exchangers = try [coordinator, other].map { try $0.exchanger("exchanger", of: Int.self, parties: 2) }
        async let one = exchangers[0].exchange(1)
        async let two = exchangers[1].exchange(2)
        _ = try await (one, two)
        #expect(await code { _ = try await exchangers[0].exchange(3, timeout: short) } == .timedOut)
        _ = try await exchangers[0].destroy()
    }

    private func latches(_ coordinator: Coordinator) async throws {
        for death in [Latch.Death.countsAsDown, .breaks] {
            let latch = try coordinator.latch("latch \(death)", count: 3, death: death)
            try await latch.withParticipation { _ in }
            #expect(try await latch.countDown(id: "a") == 1)
            #expect(try await latch.remaining == 1)
            #expect(await code { try await latch.wait(timeout: short) } == .timedOut)
            try await latch.countDown()
            try await latch.wait()
            #expect(try await latch.destroy())
        }
        let turnstile = try coordinator.turnstile("turnstile", preloaded: 1)
        try await turnstile.pass()
        try await turnstile.admit()
        try await turnstile.pass()
        try await turnstile.unlock()
        try await turnstile.pass()
        try await turnstile.lock()
        #expect(await code { try await turnstile.pass(timeout: short) } == .timedOut)
        #expect(try await turnstile.destroy())
    }

    private func buffers(_ coordinator: Coordinator, _ other: Coordinator) async throws {
        let buffer = try coordinator.boundedBuffer("buffer", of: Int.self, capacity: 2)
        let consumer = try other.boundedBuffer("buffer", of: Int.self, capacity: 2)
        let taking = Task { try await consumer.take() }
        try await buffer.put(1)
        #expect(try await taking.value == 1)
        try await buffer.put(2)
        try await buffer.put(3)
        #expect(try await buffer.count == 2)
        let putting = Task { try await buffer.put(4) }
        #expect(try await consumer.takeBytes() == [UInt8(ascii: "2")])
        try await putting.value
        struct Refused: Error {}
        await #expect(throws: Refused.self) { try await consumer.withItem(retryDelay: .zero) { _ in throw Refused() } }
        #expect(try await consumer.withItem { $0 } == 3)
        for _ in 0..<2 { try await buffer.put(5, id: "once") }
        #expect(try await buffer.destroy())
    }

    private func rateLimiters(_ coordinator: Coordinator) async throws {
        let limiter = try coordinator.rateLimiter("rate", rate: 1000, per: .seconds(1))
        #expect(try await limiter.tryAcquire().isAllowed)
        try await limiter.acquire()
    }

    private func elections(_ coordinator: Coordinator) async throws {
        let election = try coordinator.election("election")
        var changes = election.changes().makeAsyncIterator()
        #expect(await changes.next() == .some(nil))
        let term = try await election.campaign()
        #expect(try await election.leader()?.term == term.fence)
        #expect(await changes.next()??.term == term.fence)
        try await election.resign(term)
        try await election.withLeadership { _ in }
    }

    private func views(_ coordinator: Coordinator) async throws {
        #expect(try await coordinator.list().resources.isEmpty == false)
        #expect(try await coordinator.inspect("no such resource") == nil)
        _ = try await coordinator.deadlocks()
    }

    /// Performs what the mixes of primitives do: a new primitive adds its uses there.
    private func uses(_ coordinator: Coordinator) async throws {
        for use in KindUse.all {
            for isFirst in [true, false] { _ = await code { try await use.perform(by: coordinator, isFirst, short) } }
        }
    }

    /// Uses a lock after the connection has been broken: the session sends its heartbeat first.
    private func reconnect(_ coordinator: Coordinator) async throws {
        let lease = try await coordinator.mutex("held").lock()
        _ = try await admin.send("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        try await coordinator.mutex("another").withLock { _ in }
        #expect(lease.isHeld)
        try await lease.release()
    }

    /// Waits for a lock whose holder has died.
    private func sweep(_ coordinator: Coordinator) async throws {
        var configuration = CoordinatorConfiguration()
        configuration.ttl = .seconds(5)
        let (dead, lease) = try await withRedisClient(url: url) { redis in
            let dying = try Coordinator(redis: redis, namespace: namespace, configuration: configuration)
            let running = Task { await dying.run() }
            return (running, try await dying.mutex("of a dead process").lock())
        }
        // Without its client, the coordinator cannot release the lease.
        dead.cancel()
        await dead.value
        #expect(try await coordinator.inspect("of a dead process")?.holderCount == 1)
        try await coordinator.mutex("of a dead process").lock(timeout: .seconds(120)).release()
        #expect(!lease.isHeld)
    }

    private func code(_ body: () async throws -> Void) async -> RedisDCError.Code? {
        do {
            try await body()
            return nil
        } catch {
            #expect((error as? RedisDCError)?.code != .notPermitted, "\(error)")
            return (error as? RedisDCError)?.code
        }
    }
}
