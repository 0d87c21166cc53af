import Hiredis
import RedisDC
import RedisDCTesting
import TestSupport
import Testing

@testable import RedisDCTestSupport

extension PrimitiveTests {
    @Suite("Condition", .serialized)
    struct ConditionTests {
        @Test("producers and consumers of several processes miss no notification")
        func buffer() async throws {
            try await withCoordinators { _, one, two, redis in
                let items = 300
                let taken = Names()
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for consumer in 0..<3 {
                        let mutex = try (consumer == 0 ? one : two).mutex("m")
                        let arrived = try mutex.condition("arrived")
                        group.addTask {
                            for _ in 0..<(items / 3) {
                                try await mutex.withLock { lease in
                                    while try await redis.send("LLEN", "items").integer == 0 {
                                        try await arrived.wait(lease, timeout: .seconds(60))
                                        #expect(lease.isHeld)
                                    }
                                    await taken.add(try await redis.send("LPOP", "items").string ?? "nothing")
                                }
                            }
                        }
                    }
                    group.addTask {
                        let mutex = try two.mutex("m")
                        let arrived = try mutex.condition("arrived")
                        for item in 0..<items {
                            try await mutex.withLock { _ in
                                _ = try await redis.send("RPUSH", "items", .integer(item))
                                try await arrived.notify()
                            }
                        }
                    }
                    try await group.waitForAll()
                }
                #expect(await taken.all.compactMap { Int($0) } == Array(0..<items))
                let audit = try await Audit(redis)
                audit.check()
                #expect(audit.resources.isEmpty)
            }
        }

        @Test("notify wakes the task that has waited longest, and notifyAll wakes all")
        func order() async throws {
            try await withCoordinators { _, one, two, _ in
                let mutex = try one.mutex("m")
                let condition = try mutex.condition("c")
                let order = Names()
                var tasks: [Task<Void, any Error>] = []
                for number in 0..<6 {
                    tasks.append(
                        Task {
                            try await mutex.withLock { lease in
                                try await condition.wait(lease)
                                await order.add("\(number)")
                            }
                        })
                    try await until("\(number) waits") { try await two.inspect("m#c")?.waiterCount == number + 1 }
                }
                for number in 0..<2 {
                    try await condition.notify()
                    try await until("one more is awake") { await order.all.count == number + 1 }
                }
                #expect(try await two.inspect("m#c")?.waiterCount == 4)
                try await condition.notifyAll()
                for task in tasks { try await task.value }
                // They are woken together and may acquire the mutex in any order.
                #expect(await order.all.prefix(2) == ["0", "1"])
                #expect(await order.all.sorted() == ["0", "1", "2", "3", "4", "5"])
            }
        }

        @Test("a notification without waiters is not kept")
        func notKept() async throws {
            try await withCoordinators { _, one, _, redis in
                let mutex = try one.mutex("m")
                let condition = try mutex.condition("c")
                try await condition.notify(5)
                let error = await errorOf {
                    try await mutex.withLock { lease in try await condition.wait(lease, timeout: .milliseconds(50)) }
                }
                #expect(error?.code == .timedOut)
                #expect(try await Audit(redis).resources.isEmpty)
            }
        }

        @Test("after a timeout or a cancel the mutex is held again, and by no other task")
        func givingUp() async throws {
            try await withCoordinators { _, one, two, redis in
                let mutex = try one.mutex("m")
                let condition = try mutex.condition("c")
                for cancels in [false, true] {
                    let order = Names()
                    let waiting = Task {
                        try await mutex.withLock { lease in
                            let before = lease.fence
                            let error = await errorOf {
                                try await condition.wait(lease, timeout: cancels ? nil : .milliseconds(20))
                            }
                            #expect(error?.code == (cancels ? .cancelled : .timedOut))
                            #expect(lease.isHeld && lease.fence > before)
                            let holders = try await two.inspect("m")?.holders.map(\.fence)
                            #expect(holders == [lease.fence])
                            await order.add("held")
                        }
                    }
                    if cancels {
                        try await until("it waits") { try await two.inspect("m#c")?.waiterCount == 1 }
                        // The mutex was free during the wait and is held now: the cancelled task must wait for it.
                        let other = try await two.mutex("m").lock()
                        waiting.cancel()
                        try await until("it wants the mutex") { try await two.inspect("m")?.waiterCount == 1 }
                        #expect(await order.all.isEmpty)
                        try await other.release()
                    }
                    _ = await waiting.result
                    #expect(await order.all == ["held"] || cancels)
                    #expect(try await two.inspect("m") == nil)
                }
                try await Audit(redis).check()
            }
        }

        @Test("the notification of a waiter that gave up goes to the next")
        func notStolen() async throws {
            try await withCoordinators { _, one, two, redis in
                let mutex = try one.mutex("m")
                let condition = try mutex.condition("c")
                for _ in 0..<200 {
                    let over = Names()
                    let hasty = Task {
                        let error = await errorOf {
                            try await mutex.withLock { lease in
                                try await condition.wait(lease, timeout: .milliseconds(4))
                            }
                        }
                        await over.add("hasty")
                        return error
                    }
                    func waiters() async throws -> Int { try await two.inspect("m#c")?.waiterCount ?? 0 }
                    try await until("the hasty one waits, or has given up") {
                        if try await waiters() == 1 { return true }
                        return await !over.all.isEmpty
                    }
                    let patient = Task {
                        try await mutex.withLock { lease in try await condition.wait(lease, timeout: .seconds(60)) }
                    }
                    try await until("the patient one waits") {
                        let isAlone = await !over.all.isEmpty
                        return try await waiters() == (isAlone ? 1 : 2)
                    }
                    // One notification for each is enough; a lost one would leave the patient waiter waiting.
                    try await condition.notify()
                    if await hasty.value == nil { try await condition.notify() }
                    try await patient.value
                }
                try await Audit(redis).check()
            }
        }

        @Test("a lease of another mutex is refused")
        func otherLease() async throws {
            try await withCoordinators { _, one, _, _ in
                let condition = try one.mutex("m").condition("c")
                let error = await errorOf {
                    try await one.mutex("other").withLock { lease in try await condition.wait(lease) }
                }
                #expect(error?.code == .invalidArgument)
            }
        }

        @Test("mutexes whose names are equal as Swift strings, but not in bytes, are two mutexes")
        func otherBytes() async throws {
            try await withCoordinators { _, one, _, _ in
                let condition = try one.mutex("caf\u{E9}").condition("c")
                let error = await errorOf {
                    try await one.mutex("cafe\u{301}").withLock { lease in
                        try await condition.wait(lease, timeout: .milliseconds(1))
                    }
                }
                #expect(error?.code == .invalidArgument)
            }
        }

        @Test("a lease that is lost before its wait has begun remains lost, and keeps nothing")
        func lostBeforeWait() async throws {
            try await withProxiedCoordinator(configuration: shortTTL) { proxy, proxied, other, redis in
                let mutex = try proxied.mutex("m")
                let condition = try mutex.condition("c")
                // Loads the script, whose first reply would be a refusal.
                let timedOut = await errorOf {
                    try await mutex.withLock { try await condition.wait($0, timeout: .milliseconds(1)) }
                }
                #expect(timedOut?.code == .timedOut)
                let lease = try await mutex.lock()
                let (losses, losing) = AsyncStream.makeStream(of: RedisDCError.self)
                lease.onLoss { losing.yield($0) }
                // The process does not know yet that it is in the queue, so it has not released the mutex.
                await proxy.dropNextReply(matching: "m#c")
                let waiting = Task { try await condition.wait(lease, timeout: patience) }
                try await until("it waits in Redis") { try await other.inspect("m#c")?.waiterCount == 1 }
                #expect(try await other.forceRelease("m") == 1)
                for await _ in losses { break }
                try await until("it is notified") {
                    try await other.mutex("m").condition("c").notify()
                    return try await other.inspect("m#c") == nil
                }
                #expect(await errorOf { try await waiting.value }?.code == .lost)
                #expect(!lease.isHeld)
                #expect(await errorOf { try await lease.release() }?.code == .lost)
                try await other.mutex("m").lock(timeout: .seconds(60)).release()
                try await until("nothing is left") { try await Audit(redis).claims.isEmpty }
            }
        }

        @Test("a lease that is released during a wait does not stay held")
        func releasedMeanwhile() async throws {
            try await withCoordinators { _, one, two, _ in
                let mutex = try one.mutex("m")
                let condition = try mutex.condition("c")
                let lease = try await mutex.lock()
                let waiting = Task { try await condition.wait(lease) }
                // Redis has it in the queue before the process knows. Then the process releases the mutex.
                try await until("it waits, and knows it") {
                    let (queue, mutex) = (try await two.inspect("m#c"), try await two.inspect("m"))
                    return queue?.waiterCount == 1 && mutex?.holders.isEmpty ?? true
                }
                #expect(await errorOf { try await lease.release() }?.code == .lost)
                try await condition.notify()
                try await waiting.value
                #expect(!lease.isHeld)
                try await two.mutex("m").lock(timeout: .seconds(30)).release()
            }
        }
    }
}
