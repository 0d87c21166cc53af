import CoordinationBase
import Hiredis
import TestRandom
import TestSupport
import Testing

@testable import RedisDC
@testable import RedisDCTestSupport

extension EngineTests {
    @Suite("Races", .serialized)
    struct RaceTests {
        @Test("cancelling a random half of 10,000 waiters during signals loses no permit")
        func manyWaiters() async throws {
            try await withCoordinators { _, one, two, redis in
                let semaphore = try one.semaphore("s", permits: 0)
                let signaller = try two.semaphore("s", permits: 0)
                let waiting = (0..<10_000).map { _ in
                    Task { () -> Bool in
                        do {
                            try await semaphore.wait()
                            return true
                        } catch let error as RedisDCError where error.code == .cancelled { return false }
                    }
                }
                try await until("all waiters are queued") {
                    try await two.inspect("s", limit: 1)?.waiterCount == 10_000
                }
                let seed = testSeed()
                let cancelling = Task {
                    var generator = SplitMix(seed: seed)
                    for task in waiting.shuffled(using: &generator).prefix(5000) {
                        task.cancel()
                        await Task.yield()
                    }
                }
                for _ in 0..<100 { try await signaller.signal(50) }
                await cancelling.value
                // Enough for the others: 5,000 permits were signalled, and at most 5,000 waits cancelled without one.
                try await signaller.signal(5000)
                var taken = 0
                for task in waiting where try await task.value { taken += 1 }
                #expect(taken >= 5000, "seed \(seed)")
                try await until("all permits are confirmed") {
                    try await Audit(redis).claims.isEmpty
                }
                let audit = try await Audit(redis)
                audit.check("seed \(seed)")
                #expect(audit.resources["s"]?.free == 10_000 - taken, "seed \(seed)")
                #expect(audit.claims.isEmpty, "seed \(seed)")
            }
        }

        @Test("a timeout that races with a grant loses no permit")
        func timeoutAndGrant() async throws {
            try await withCoordinators { _, one, two, redis in
                let semaphore = try one.semaphore("s", permits: 0)
                let signaller = try two.semaphore("s", permits: 0)
                try await semaphore.create()
                var (taken, timedOut) = (0, 0)
                for round in 0..<2000 {
                    async let signal: Void = signal(signaller, after: .microseconds(500 + round % 1500))
                    do {
                        try await semaphore.wait(timeout: .milliseconds(1))
                        taken += 1
                    } catch let error as RedisDCError where error.code == .timedOut {
                        timedOut += 1
                    }
                    try await signal
                }
                try await until("all permits are confirmed") {
                    try await Audit(redis).claims.isEmpty
                }
                let audit = try await Audit(redis)
                audit.check()
                #expect(audit.resources["s"]?.free == timedOut)
                #expect(audit.claims.isEmpty)
            }
        }

        private func signal(_ semaphore: Semaphore, after pause: Duration) async throws {
            try await Task.sleep(for: pause)
            try await semaphore.signal()
        }

        @Test("random operations have the results that a model predicts", arguments: testSeeds(0..<8))
        func model(seed: UInt64) async throws {
            try await withCoordinators { _, one, two, redis in
                var generator = SplitMix(seed: seed)
                var (free, limit) = (3, 3)
                var leases: [Lease] = []
                let handles = try [one, two].map { try $0.semaphore("s", permits: 3) }
                try await handles[0].create()
                for step in 0..<300 {
                    let semaphore = handles.randomElement(using: &generator)!
                    let count = Int.random(in: 1...3, using: &generator)
                    switch Int.random(in: 0..<6, using: &generator) {
                    case 0:
                        try await semaphore.signal(count)
                        free += count
                    case 1:
                        let isTaken = try await semaphore.tryWait(count)
                        #expect(isTaken == (free >= count), "step \(step)")
                        if isTaken { free -= count }
                    case 2:
                        do {
                            leases.append(try await semaphore.acquireLease(count, timeout: .zero))
                            #expect(free >= count, "step \(step)")
                            free -= count
                        } catch let error as RedisDCError {
                            #expect(error.code == .timedOut && free < count, "step \(step)")
                        }
                    case 3:
                        guard let lease = leases.popLast() else { break }
                        try await lease.release()
                        free += lease.count
                    case 4:
                        let size = Int.random(in: 0...6, using: &generator)
                        try await semaphore.resize(to: size)
                        free += size - limit
                        limit = size
                    default:
                        do {
                            // A wait that must succeed gets enough time.
                            try await semaphore.wait(count, timeout: free >= count ? .seconds(120) : .milliseconds(1))
                            #expect(free >= count, "step \(step)")
                            free -= count
                        } catch let error as RedisDCError {
                            #expect(error.code == .timedOut && free < count, "step \(step)")
                        }
                    }
                    let value = try await semaphore.value
                    #expect(value == free, "step \(step)")
                }
                try await Audit(redis).check("seed \(seed)")
            }
        }
    }

    @Suite("Fairness and reentrancy", .serialized)
    struct PolicyTests {
        @Test("with barging, a request overtakes waiters while permits are free, and waiters are served too")
        func barging() async throws {
            try await withCoordinators { _, one, two, redis in
                let semaphore = try one.semaphore("s", permits: 2, fairness: .barging)
                let big = Task { try await semaphore.wait(3) }
                try await until("the waiter is queued") { try await one.inspect("s")?.waiterCount == 1 }
                let other = try two.semaphore("s", permits: 2, fairness: .barging)
                #expect(try await other.tryWait())
                try await other.signal(2)
                try await big.value
                #expect(try await other.value == 0)
                #expect(await errorOf { try await two.semaphore("s", permits: 2).wait() }?.code == .conflict)
                for _ in 0..<100 {
                    async let waiting: Void = semaphore.wait(timeout: .seconds(120))
                    try await other.signal()
                    try await waiting
                }
                try await Audit(redis).check()
            }
        }

        @Test("a handle of an existing semaphore uses the stored fairness, and a handle with another one is refused")
        func existing() async throws {
            try await withCoordinators { _, one, two, redis in
                for fairness in [Fairness.fifo, .barging] {
                    let semaphore = try one.semaphore("s", permits: 1, fairness: fairness)
                    let existing = try two.existingSemaphore("s")
                    #expect(await errorOf { try await existing.wait() }?.code == .notFound)
                    try await semaphore.create()
                    let big = Task { try await semaphore.wait(2) }
                    try await until("the waiter is queued") { try await one.inspect("s")?.waiterCount == 1 }
                    #expect(try await existing.tryWait() == (fairness == .barging))
                    try await existing.signal(2)
                    try await big.value
                    try await existing.resize(to: 3)
                    let refused = try two.semaphore("s", permits: 3, fairness: fairness == .fifo ? .barging : .fifo)
                    #expect(await errorOf { try await refused.wait() }?.code == .conflict)
                    #expect(await errorOf { try await refused.resize(to: 4) }?.code == .conflict)
                    #expect(try await existing.destroy())
                }
                try await one.mutex("m").withLock { _ in
                    let error = await errorOf { try await two.existingSemaphore("m").wait() }
                    #expect(error?.code == .conflict)
                    #expect(
                        error?.message.hasSuffix("this call expects a semaphore with any number of permits") == true)
                }
                try await Audit(redis).check()
            }
        }

        @Test("a reentrant lock has the same fence, and the outermost unlock releases the mutex")
        func reentrant() async throws {
            try await withCoordinators { _, one, two, _ in
                let mutex = try one.mutex("m", isReentrant: true)
                try await mutex.withLock { outer in
                    try await mutex.withLock { inner in #expect(inner.fence == outer.fence) }
                    let other = try await two.mutex("m").tryLock()
                    #expect(other == nil)
                }
                try await two.mutex("m").withLock(timeout: .seconds(10)) { _ in }
            }
        }

        @Test("a second lock of a mutex that is not reentrant fails instead of waiting for itself")
        func notReentrant() async throws {
            try await withCoordinators { _, one, _, _ in
                let mutex = try one.mutex("m")
                try await mutex.withLock { _ in
                    let error = await errorOf { try await mutex.withLock { _ in } }
                    #expect(error?.code == .invalidArgument)
                }
            }
        }

        @Test("the longest durations are accepted as timeouts and intervals")
        func longest() async throws {
            try await withServer { _, redis, other in
                var configuration = CoordinatorConfiguration()
                configuration.pollInterval = .seconds(Int64.max)
                configuration.callTimeout = .seconds(Int64.max) * 10
                let sleeps = Locked(false)
                let clock = MonotonicClock.continuous()
                let coordinator = try Coordinator(
                    redis: redis, namespace: "default", configuration: configuration,
                    clock: MonotonicClock(now: clock.now) { duration in
                        sleeps.withLock { $0 = true }
                        try await clock.sleep(duration)
                    })
                let longest = [Duration.seconds(Int64.max), .seconds(Int64.max) * 18]
                // Without a session, the timer has nothing but these deadlines to wake up for.
                let tasks = longest.map { timeout in
                    Task { try await coordinator.semaphore("s", permits: 0).wait(timeout: timeout) }
                }
                try await until("the timer sleeps") { sleeps.withLock { $0 } }
                let running = Task { await coordinator.run() }
                try await coordinator.semaphore("s", permits: 0).signal(2)
                for task in tasks { try await task.value }
                let mutexes = try ["a", "b"].map { try coordinator.mutex($0) }
                try await coordinator.withLocks(mutexes, timeout: longest[1]) { _ in }
                try await coordinator.rateLimiter("r", rate: 1, per: .seconds(1)).acquire(timeout: longest[1])
                for ttl in longest {
                    configuration.ttl = ttl
                    #expect(
                        await errorOf { _ = try Coordinator(redis: redis, configuration: configuration) }?.code
                            == .invalidArgument)
                }
                running.cancel()
                await running.value
                configuration = CoordinatorConfiguration()
                configuration.ttl = .seconds(366 * 86400)
                try await withCoordinator(redis: other, configuration: configuration) { one in
                    try await one.mutex("m").withLock { #expect($0.isHeld) }
                }
                let negative = await errorOf {
                    try await coordinator.withLocks(mutexes, timeout: .seconds(-1)) { _ in }
                }
                #expect(negative?.code == .invalidArgument)
            }
        }

        @Test("invalid arguments are refused before a command is sent")
        func badInput() async throws {
            try await withServer { _, redis, _ in
                let coordinator = try Coordinator(redis: redis)
                #expect(await errorOf { _ = try coordinator.mutex("a{b}") }?.code == .invalidArgument)
                #expect(await errorOf { _ = try coordinator.semaphore("", permits: 1) }?.code == .invalidArgument)
                #expect(await errorOf { _ = try coordinator.semaphore("s", permits: -1) }?.code == .invalidArgument)
                let semaphore = try coordinator.semaphore("s", permits: 2)
                #expect(await errorOf { try await semaphore.wait(0) }?.code == .invalidArgument)
                #expect(await errorOf { try await semaphore.signal(1_000_001) }?.code == .invalidArgument)
                #expect(await errorOf { _ = try await semaphore.acquireLease(3) }?.code == .invalidArgument)
                #expect(
                    await errorOf { try await semaphore.wait(timeout: .seconds(-1)) }?.code == .invalidArgument)
                var configuration = CoordinatorConfiguration()
                // A colon with a combining accent counts as a colon.
                #expect(
                    await errorOf { _ = try Coordinator(redis: redis, namespace: "a:\u{301}b") }?.code
                        == .invalidArgument)
                configuration.ttl = .milliseconds(999)
                #expect(
                    await errorOf { _ = try Coordinator(redis: redis, configuration: configuration) }?.code
                        == .invalidArgument)
                #expect(try await redis.send("DBSIZE").integer == 0)
            }
        }
    }
}
