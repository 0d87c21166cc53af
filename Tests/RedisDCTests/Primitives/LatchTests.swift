import Hiredis
import RedisDC
import RedisDCTesting
import TestSupport
import Testing

extension PrimitiveTests {
    @Suite("Latch")
    struct LatchTests {
        @Test("opens when it has been counted down so often, for those who wait and those who come later")
        func opens() async throws {
            try await withCoordinators { _, one, two, redis in
                let latch = try one.latch("l", count: 3)
                let other = try two.latch("l", count: 3)
                let waiting = (0..<200).map { _ in Task { try await other.wait(timeout: .seconds(60)) } }
                try await until("all wait") { try await one.inspect("l")?.waiterCount == 200 }
                #expect(try await latch.countDown() == 2)
                #expect(try await other.countDown() == 1)
                #expect(await errorOf { try await latch.wait(timeout: .zero) }?.code == .timedOut)
                #expect(try await latch.remaining == 1)
                #expect(try await latch.countDown() == 0)
                for task in waiting { try await task.value }
                try await latch.wait(timeout: .zero)
                #expect(try await latch.countDown() == 0)
                try await latch.wait(timeout: .zero)
                try await Audit(redis).check()
            }
        }

        @Test("an id counts once, from wherever it comes")
        func ids() async throws {
            try await withCoordinators { _, one, two, redis in
                let latch = try one.latch("l", count: 2)
                for coordinator in [one, two, one] {
                    #expect(try await coordinator.latch("l", count: 2).countDown(id: "shard-1") == 1)
                }
                #expect(try await latch.countDown(id: "shard-2") == 0)
                try await latch.wait(timeout: .zero)
                // A new one knows nothing of it.
                #expect(try await latch.destroy())
                #expect(try await Audit(redis).lines.isEmpty)
                #expect(try await latch.countDown(id: "shard-1") == 1)
            }
        }

        @Test("a latch for nothing is open")
        func zero() async throws {
            try await withCoordinators { _, one, _, _ in try await one.latch("l", count: 0).wait(timeout: .zero) }
        }

        @Test("the end of a participation counts as down, a failed one too")
        func participation() async throws {
            try await withCoordinators { _, one, two, redis in
                let latch = try one.latch("l", count: 2)
                try await latch.withParticipation { _ in
                    let down = try await two.inspect("l")?.signalled
                    #expect(down == 0)
                }
                struct Failed: Error {}
                await #expect(throws: Failed.self) { try await latch.withParticipation { _ in throw Failed() } }
                try await latch.wait(timeout: .seconds(60))
                try await Audit(redis).check()
            }
        }

        @Test("the death of a participant counts as down, or breaks it", arguments: [false, true])
        func death(breaks: Bool) async throws {
            try await withNodes { node, server, redis in
                let victim = try Child(
                    "redisdc-worker", ["engine-part", server.url, "l", breaks ? "breaking-latch" : "latch", "2"])
                try await until("it takes part") { try await redis.send("LLEN", "log").integer == 1 }
                let latch = try node.latch("l", count: 2, death: breaks ? .breaks : .countsAsDown)
                let waiting = Task { await errorOf { try await latch.wait(timeout: .seconds(60)) } }
                try await latch.countDown()
                try await until("it waits") { try await node.inspect("l")?.waiterCount == 1 }
                try await victim.kill9()
                #expect(await waiting.value?.code == (breaks ? .broken : nil))
                #expect(await errorOf { try await latch.wait(timeout: .zero) }?.code == (breaks ? .broken : nil))
                if breaks { #expect(await errorOf { try await latch.countDown() }?.code == .broken) }
                #expect(try await latch.destroy())
                #expect(await errorOf { try await latch.wait(timeout: .zero) }?.code == .timedOut)
            }
        }

        @Test("destroying wakes who waits")
        func destroyed() async throws {
            try await withCoordinators { _, one, two, _ in
                let latch = try one.latch("l", count: 1)
                let waiting = Task { await errorOf { try await latch.wait() } }
                try await until("it waits") { try await two.inspect("l")?.waiterCount == 1 }
                #expect(try await two.latch("l", count: 1).destroy())
                #expect(await waiting.value?.code == .destroyed)
            }
        }
    }

    @Suite("Turnstile")
    struct TurnstileTests {
        @Test("lets pass as many as are admitted, in their order, and all while it is open")
        func passes() async throws {
            try await withCoordinators { _, one, two, redis in
                let gate = try one.turnstile("t", preloaded: 2)
                let other = try two.turnstile("t", preloaded: 2)
                try await gate.pass(timeout: .zero)
                try await other.pass(timeout: .zero)
                #expect(await errorOf { try await gate.pass(timeout: .zero) }?.code == .timedOut)
                let names = Names()
                var tasks: [Task<Void, any Error>] = []
                for number in 0..<10 {
                    tasks.append(
                        Task {
                            try await gate.pass()
                            await names.add("\(number)")
                        })
                    try await until("it waits") { try await two.inspect("t")?.waiterCount == number + 1 }
                }
                try await other.admit(1)
                try await until("one has passed") { await names.all == ["0"] }
                #expect(try await two.inspect("t")?.waiterCount == 9)
                try await other.unlock()
                for task in tasks { try await task.value }
                for _ in 0..<300 { try await gate.pass(timeout: .zero) }
                try await gate.lock()
                #expect(await errorOf { try await other.pass(timeout: .zero) }?.code == .timedOut)
                // Passes that nobody used are gone with the lock.
                try await gate.admit(5)
                try await gate.lock()
                #expect(await errorOf { try await other.pass(timeout: .zero) }?.code == .timedOut)
                try await Audit(redis).check()
                #expect(try await gate.destroy())
            }
        }
    }

    @Suite("Several locks")
    struct MultiLockTests {
        @Test("whoever takes several in whatever order does not wait for ever, and holds all of them")
        func ordered() async throws {
            try await withCoordinators { _, one, two, redis in
                let names = ["a", "b", "c"]
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for number in 0..<12 {
                        let coordinator = number.isMultiple(of: 2) ? one : two
                        let wanted = [names[number % 3], names[(number + 1) % 3], names[number % 3]]
                        group.addTask {
                            for _ in 0..<20 {
                                try await coordinator.withLocks(wanted, timeout: .seconds(60)) { leases in
                                    #expect(Set(leases.keys) == Set(wanted))
                                    let areHeld = leases.values.allSatisfy { $0.isHeld }
                                    #expect(areHeld)
                                    for name in leases.keys {
                                        let inside = try await redis.send("INCR", .string(name)).integer
                                        #expect(inside == 1)
                                    }
                                    for name in leases.keys { _ = try await redis.send("DECR", .string(name)) }
                                }
                            }
                        }
                    }
                    try await group.waitForAll()
                }
                #expect(try await Audit(redis).resources.isEmpty)
            }
        }

        @Test("when one is not to be had in time, none is held")
        func allOrNone() async throws {
            try await withCoordinators { _, one, two, _ in
                let lease = try await two.mutex("b").lock()
                for timeout in [Duration.zero, .milliseconds(20)] {
                    let error = await errorOf { try await one.withLocks(["b", "a"], timeout: timeout) { _ in } }
                    #expect(error?.code == .timedOut)
                    try await two.mutex("a").lock(timeout: .seconds(10)).release()
                }
                try await lease.release()
            }
        }

        @Test("two names that look the same and are not are two mutexes, and not to be had in one dictionary")
        func names() async throws {
            try await withCoordinators { _, coordinator, other, _ in
                let (composed, decomposed) = ("caf\u{E9}", "cafe\u{301}")
                let error = await errorOf { try await coordinator.withLocks([composed, decomposed]) { _ in } }
                #expect(error?.code == .invalidArgument)
                try await coordinator.mutex(composed).withLock { _ in
                    // Not the one that is held already: it is locked, too.
                    try await coordinator.mutex(decomposed).withLock(timeout: .seconds(10)) { _ in
                        for name in [composed, decomposed] {
                            let error = await errorOf { _ = try await other.mutex(name).lock(timeout: .zero) }
                            #expect(error?.code == .timedOut)
                        }
                    }
                }
            }
        }
    }
}
