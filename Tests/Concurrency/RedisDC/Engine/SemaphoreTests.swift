import Hiredis
import RedisDC
import RedisDCTesting
import TestSupport
import Testing

@testable import RedisDCTestSupport

extension EngineTests {
    @Suite("Semaphore", .serialized)
    struct SemaphoreTests {
        @Test("two coordinators take and add permits of one semaphore")
        func takeAndAdd() async throws {
            try await withCoordinators { _, one, two, _ in
                let a = try one.semaphore("s", permits: 2)
                let b = try two.semaphore("s", permits: 2)
                try await a.wait()
                try await b.wait()
                #expect(try await a.tryWait() == false)
                #expect(try await b.value == 0)
                try await b.signal(3)
                try await a.wait(3)
                #expect(try await a.value == 0)
            }
        }

        @Test("a signal from another coordinator wakes a wait")
        func woken() async throws {
            try await withCoordinators { _, one, two, _ in
                let a = try one.semaphore("s", permits: 0)
                let b = try two.semaphore("s", permits: 0)
                for _ in 0..<100 {
                    async let waiting: Void = a.wait(timeout: patience)
                    try await b.signal()
                    try await waiting
                }
                #expect(try await a.value == 0)
            }
        }

        @Test("waiters are served in order, whatever number of permits they want")
        func fifo() async throws {
            try await withCoordinators { _, one, two, _ in
                let order = Order()
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for (index, count) in [3, 1, 2, 5, 1].enumerated() {
                        let coordinator = index % 2 == 0 ? one : two
                        let semaphore = try coordinator.semaphore("s", permits: 0)
                        group.addTask {
                            try await semaphore.wait(count, timeout: .seconds(20))
                            await order.add(index)
                        }
                        try await until("\(index + 1) waiters are queued") {
                            try await one.inspect("s")?.waiterCount == index + 1
                        }
                    }
                    let semaphore = try two.semaphore("s", permits: 0)
                    for number in 0..<12 {
                        try await semaphore.signal()
                        let passed = [0, 0, 0, 1, 2, 2, 3, 3, 3, 3, 3, 4, 5][number + 1]
                        try await until("\(passed) waiters have passed") { await order.all.count == passed }
                    }
                    try await group.waitForAll()
                }
                #expect(await order.all == [0, 1, 2, 3, 4])
            }
        }

        @Test("a wait that times out takes nothing")
        func timeOut() async throws {
            try await withCoordinators { _, one, _, _ in
                let semaphore = try one.semaphore("s", permits: 0)
                for milliseconds in [0, 1, 20] {
                    let error = await errorOf { try await semaphore.wait(timeout: .milliseconds(milliseconds)) }
                    #expect(error?.code == .timedOut)
                }
                try await semaphore.signal()
                // A server that takes more than 250 ms to answer may have a claim for a moment longer.
                try await until("the permit is free") { try await semaphore.value == 1 }
                #expect(try await one.inspect("s")?.waiterCount == 0)
            }
        }

        @Test("a cancelled wait takes nothing")
        func cancel() async throws {
            try await withCoordinators { _, one, two, _ in
                let semaphore = try one.semaphore("s", permits: 0)
                let waiting = Task { try await semaphore.wait() }
                try await until("the waiter is queued") { try await one.inspect("s")?.waiterCount == 1 }
                waiting.cancel()
                let error = await errorOf { try await waiting.value }
                #expect(error?.code == .cancelled)
                try await two.semaphore("s", permits: 0).signal()
                #expect(try await semaphore.value == 1)
            }
        }

        @Test("a leased permit returns, a consumed one does not")
        func leaseAndConsume() async throws {
            try await withCoordinators { _, one, _, _ in
                let semaphore = try one.semaphore("s", permits: 3)
                let fence = try await semaphore.withPermits(2) { permit in
                    #expect(permit.isHeld)
                    let value = try await semaphore.value
                    #expect(value == 1)
                    return permit.fence
                }
                #expect(try await semaphore.value == 3)
                try await semaphore.withPermit { #expect($0.fence > fence) }
                try await semaphore.wait()
                #expect(try await semaphore.value == 2)
            }
        }

        @Test("destroy wakes all waiters with .destroyed")
        func destroy() async throws {
            try await withCoordinators { _, one, two, _ in
                let semaphore = try one.semaphore("s", permits: 0)
                let waiting = (0..<300).map { _ in Task { try await semaphore.wait() } }
                try await until("all waiters are queued") { try await one.inspect("s")?.waiterCount == 300 }
                #expect(try await two.semaphore("s", permits: 0).destroy())
                for task in waiting {
                    let error = await errorOf { try await task.value }
                    #expect(error?.code == .destroyed)
                }
                #expect(try await one.inspect("s") == nil)
                #expect(try await two.semaphore("s", permits: 0).destroy() == false)
            }
        }

        @Test("waiters of a destroyed semaphore leave nothing in Redis")
        func destroyedWaitersLeaveNothing() async throws {
            try await withServer { _, redis, other in
                try await withCoordinator(redis: redis, configuration: longTTL) { one in
                    let semaphore = try one.semaphore("s", permits: 0)
                    let waiting = (0..<50).map { _ in Task { try await semaphore.wait() } }
                    try await until("all waiters are queued") { try await one.inspect("s")?.waiterCount == 50 }
                    try await semaphore.destroy()
                    for task in waiting { #expect(await errorOf { try await task.value }?.code == .destroyed) }
                }
                #expect(try await Audit(other).slots.isEmpty)
            }
        }

        @Test("a different number of permits is a conflict, and resize changes it")
        func conflict() async throws {
            try await withCoordinators { _, one, two, _ in
                let three = try one.semaphore("s", permits: 3)
                #expect(try await three.create())
                #expect(try await three.create() == false)
                let error = await errorOf { try await two.semaphore("s", permits: 4).wait() }
                #expect(error?.code == .conflict)
                #expect(error?.message.contains("3 permits") == true)
                #expect(await errorOf { _ = try await two.mutex("s").lock() }?.code == .conflict)
                try await one.mutex("m").withLock { _ in
                    let namesake = try two.existingSemaphore("m")
                    #expect(await errorOf { try await namesake.destroy() }?.code == .conflict)
                    #expect(await errorOf { _ = try await namesake.value }?.code == .conflict)
                    let held = try await one.inspect("m")?.holderCount
                    #expect(held == 1)
                }
                try await three.wait(2)
                try await three.resize(to: 1)
                #expect(try await three.value == -1)
                try await two.semaphore("s", permits: 1).signal(3)
                #expect(try await three.value == 2)
                #expect(await errorOf { try await one.existingSemaphore("t").wait() }?.code == .notFound)
            }
        }

        @Test("one signal adds a million permits")
        func million() async throws {
            try await withCoordinators { _, one, _, _ in
                let semaphore = try one.semaphore("s", permits: 0)
                let waiting = (0..<1000).map { _ in Task { try await semaphore.wait(10) } }
                try await until("all waiters are queued") { try await one.inspect("s")?.waiterCount == 1000 }
                try await semaphore.signal(1_000_000)
                for task in waiting { try await task.value }
                #expect(try await semaphore.value == 990_000)
            }
        }
    }

    @Suite("Mutex", .serialized)
    struct MutexTests {
        @Test("one task at a time holds a mutex, among tasks and coordinators")
        func exclusion() async throws {
            try await withCoordinators { _, one, two, redis in
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for index in 0..<20 {
                        let mutex = try (index % 2 == 0 ? one : two).mutex("m")
                        group.addTask {
                            for _ in 0..<10 {
                                try await mutex.withLock { lease in
                                    let seen = try await redis.send("GET", "n").string ?? "0"
                                    _ = try await redis.send("SET", "n", .integer(Int(seen)! + 1))
                                }
                            }
                        }
                    }
                    try await group.waitForAll()
                }
                #expect(try await redis.send("GET", "n").string == "200")
                #expect(try await one.inspect("m") == nil)
            }
        }
    }
}

actor Order {
    private(set) var all: [Int] = []
    func add(_ element: Int) { all.append(element) }
}
