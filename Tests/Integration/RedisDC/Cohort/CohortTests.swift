// A mutex that the tasks of a process hand over among themselves, with real servers.
import Foundation
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import RedisDC
@testable import RedisDCTestSupport

/// A log of the holders in their order. It counts those who entered before the last one had left.
private actor Visits {
    private(set) var all: [(owner: String, fence: UInt64)] = []
    private(set) var overlaps = 0
    private var isInside = false

    func enter(_ owner: String, _ fence: UInt64) {
        if isInside { overlaps += 1 }
        isInside = true
        all.append((owner, fence))
    }

    func leave() { isInside = false }

    var fences: [UInt64] { all.map(\.fence) }
    var hasGrowingFences: Bool { zip(fences, fences.dropFirst()).allSatisfy(<) }
    var owners: [String] { all.map(\.owner) }
}

/// The number of scripts and commands that the server has carried out.
private func commands(_ redis: RedisClient) async throws -> Int {
    let text = try await redis.send("INFO", "stats").string ?? ""
    let line = text.split(whereSeparator: \.isNewline).first { $0.hasPrefix("total_commands_processed:") }
    return line.flatMap { Int($0.split(separator: ":")[1]) } ?? -1
}

extension PrimitiveTests {
    @Suite("Cohort", .serialized)
    struct CohortTests {
        @Test("tasks of one process hand the mutex over, one at a time, without asking Redis")
        func handsOver() async throws {
            try await withCoordinators { _, one, _, redis in
                let mutex = try one.mutex("m", locality: .cohort(linger: .seconds(60)))
                try await mutex.withLock { _ in }
                let visits = Visits()
                let before = try await commands(redis)
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for task in 0..<8 {
                        group.addTask {
                            for _ in 0..<200 {
                                try await mutex.withLock { lease in
                                    await visits.enter("\(task)", lease.fence)
                                    #expect(lease.isHeld)
                                    await visits.leave()
                                }
                            }
                        }
                    }
                    try await group.waitForAll()
                }
                #expect(await visits.overlaps == 0)
                #expect(await visits.all.count == 1600)
                #expect(await visits.hasGrowingFences)
                // Heartbeats, and the commands of this test. Each request would be several commands.
                #expect(try await commands(redis) - before < 1000)
                let audit = try await Audit(redis)
                audit.check()
                #expect(audit.claims.count == 1)
                #expect(audit.resources["m"]!.lastFence > Double(await visits.fences.max()!))
            }
        }

        @Test("the unused mutex stays for `linger`, then it is free")
        func lingers() async throws {
            try await withCoordinators { _, one, two, redis in
                let mutex = try one.mutex("m", locality: .cohort(linger: .milliseconds(50)))
                let fence = try await mutex.withLock { $0.fence }
                try await until("the process has given it back") { try await two.inspect("m") == nil }
                let next = try await two.mutex("m").withLock { $0.fence }
                #expect(next > fence)
                // Without linger it is free when the call returns.
                try await one.mutex("m", locality: .cohort(linger: .zero)).withLock { _ in }
                #expect(try await two.inspect("m") == nil)
                try await Audit(redis).check()
            }
        }

        @Test("a process that waits recalls the unused mutex", arguments: [Locality.strict, .cohort()])
        func recalled(_ other: Locality) async throws {
            try await withCoordinators { _, one, two, redis in
                let mutex = try one.mutex("m", locality: .cohort(linger: .seconds(60)))
                let fences = Visits()
                for _ in 0..<50 {
                    try await mutex.withLock { await fences.enter("one", $0.fence) }
                    await fences.leave()
                    // Before the linger ends, by far.
                    try await two.mutex("m", locality: other).withLock(timeout: .seconds(30)) {
                        await fences.enter("two", $0.fence)
                    }
                    await fences.leave()
                }
                #expect(await fences.hasGrowingFences)
                try await Audit(redis).check()
            }
        }

        @Test("an attempt of another process recalls the unused mutex, and a later one succeeds")
        func attempts() async throws {
            try await withCoordinators { _, one, two, _ in
                let mutex = try one.mutex("m", locality: .cohort(linger: .seconds(60)))
                try await mutex.withLock { _ in }
                var attempts = 0
                try await until("an attempt succeeds") {
                    attempts += 1
                    guard let lease = try await two.mutex("m").tryLock() else { return false }
                    try await lease.release()
                    return true
                }
                #expect(attempts > 1)
                let lease = try #require(try await mutex.tryLock())
                #expect(try await mutex.tryLock() == nil)
                #expect(await errorOf { _ = try await mutex.lock(timeout: .zero) }?.code == .timedOut)
                #expect(try await two.mutex("m", locality: .cohort()).tryLock() == nil)
                try await lease.release()
            }
        }

        @Test("no more than `limit` tasks pass a process that waits", arguments: [1, 4])
        func limited(limit: Int) async throws {
            try await withCoordinators { _, one, two, redis in
                let locality = Locality.cohort(limit: limit)
                let visits = Visits()
                // Everybody waits before the first turn begins, so the processes wait for each other until one has had all
                // its turns.
                let gate = try await one.mutex("m").lock()
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for (owner, node) in [("one", one), ("two", two)] {
                        let mutex = try node.mutex("m", locality: locality)
                        for _ in 0..<240 {
                            group.addTask {
                                try await mutex.withLock { lease in
                                    await visits.enter(owner, lease.fence)
                                    await visits.leave()
                                }
                            }
                        }
                        try await until("all of \(owner) wait") { mutex.cohort?.waiterCount == 240 }
                    }
                    try await until("a claim of each process waits") {
                        try await one.inspect("m")?.waiterCount == 2
                    }
                    try await gate.release()
                    try await group.waitForAll()
                }
                let owners = await visits.owners
                #expect(owners.count == 480)
                #expect(await visits.hasGrowingFences)
                #expect(await visits.overlaps == 0)
                var runs: [Int] = []
                for (index, owner) in owners.enumerated() {
                    if index > 0, owners[index - 1] == owner { runs[runs.count - 1] += 1 } else { runs.append(1) }
                }
                // In the last run, the other process does not wait any more.
                #expect(runs.dropLast().allSatisfy { $0 <= limit }, "\(runs)")
                try await Audit(redis).check()
            }
        }

        @Test("strict callers and cohorts with other settings exclude each other")
        func together() async throws {
            try await withCoordinators { _, one, two, redis in
                let visits = Visits()
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for (number, node) in [one, two, one, two, one, two].enumerated() {
                        let locality: Locality =
                            number < 2 ? .strict : .cohort(limit: number, linger: .milliseconds(number))
                        group.addTask {
                            for _ in 0..<60 {
                                try await node.mutex("m", locality: locality).withLock { lease in
                                    await visits.enter("\(number)", lease.fence)
                                    await Task.yield()
                                    await visits.leave()
                                }
                            }
                        }
                    }
                    try await group.waitForAll()
                }
                #expect(await visits.overlaps == 0)
                #expect(await visits.hasGrowingFences)
                try await until("it is free") { try await Audit(redis).claims.isEmpty }
                try await Audit(redis).check()
            }
        }

        @Test("a wait that is cancelled or times out has taken nothing and leaves nothing behind")
        func givesUp() async throws {
            try await withCoordinators { _, one, two, redis in
                let mutex = try one.mutex("m", locality: .cohort())
                let lease = try await two.mutex("m").lock()
                #expect(await errorOf { _ = try await mutex.lock(timeout: .milliseconds(50)) }?.code == .timedOut)
                // A server that takes more than 250 ms to answer may have a claim for a moment longer.
                try await until("nobody waits") { try await two.inspect("m")?.waiterCount == 0 }
                let waiters = (0..<20).map { _ in Task { await errorOf { _ = try await mutex.lock() } } }
                try await until("one claim stands for all") { try await two.inspect("m")?.waiterCount == 1 }
                for waiter in waiters { waiter.cancel() }
                for waiter in waiters { #expect(await waiter.value?.code == .cancelled) }
                try await until("nobody waits") { try await two.inspect("m")?.waiterCount == 0 }
                // One who comes while the request is being cancelled.
                let first = Task { await errorOf { _ = try await mutex.lock() } }
                try await until("it waits") { try await two.inspect("m")?.waiterCount == 1 }
                first.cancel()
                let second = Task { try await mutex.lock() }
                _ = await first.value
                try await lease.release()
                try await second.value.release()
                // Within the process.
                let held = try await mutex.lock()
                #expect(await errorOf { _ = try await mutex.lock(timeout: .milliseconds(20)) }?.code == .timedOut)
                let cancelled = Task { await errorOf { _ = try await mutex.lock() } }
                cancelled.cancel()
                #expect(await cancelled.value?.code == .cancelled)
                let next = Task { try await mutex.lock() }
                try await held.release()
                try await next.value.release()
                try await until("it is free") { try await Audit(redis).claims.isEmpty }
                try await Audit(redis).check()
            }
        }

        @Test("10,000 waiters are cancelled at once, and the holder keeps the mutex")
        func manyCancelled() async throws {
            try await withCoordinators { _, one, _, _ in
                let mutex = try one.mutex("m", locality: .cohort())
                let lease = try await mutex.lock()
                let waiters = (0..<10_000).map { _ in Task { await errorOf { _ = try await mutex.lock() } } }
                let last = Task { try await mutex.lock() }
                for waiter in waiters { waiter.cancel() }
                for waiter in waiters { #expect(await waiter.value?.code == .cancelled) }
                #expect(lease.isHeld)
                try await lease.release()
                try await last.value.release()
            }
        }

        @Test("a forced release ends the current turn, and the next one has a higher fence")
        func forced() async throws {
            try await withCoordinators { _, one, two, redis in
                let mutex = try one.mutex("m", locality: .cohort(linger: .seconds(60)))
                for _ in 0..<100 { try await mutex.withLock { _ in } }
                let lease = try await mutex.lock()
                let waiting = Task { try await mutex.lock() }
                try await until("it waits") { mutex.cohort?.waiterCount == 1 }
                #expect(try await two.mutex("m").forceRelease())
                try await until("the turn is lost") { !lease.isHeld }
                #expect(await errorOf { try await lease.release() }?.code == .lost)
                let next = try await waiting.value
                #expect(next.fence > lease.fence)
                try await next.release()
                let strict = try await two.mutex("m").withLock { $0.fence }
                #expect(strict > next.fence)
                // While nobody uses it.
                try await mutex.withLock { _ in }
                #expect(try await two.mutex("m").forceRelease())
                #expect(try await two.mutex("m").withLock { $0.fence } > strict)
                try await mutex.withLock { _ in }
                try await Audit(redis).check()
            }
        }

        @Test("when Redis loses its data, the turn is lost, and waiting tasks acquire the mutex again")
        func dataLoss() async throws {
            try await withCoordinators { _, one, _, redis in
                let mutex = try one.mutex("m", locality: .cohort())
                let lease = try await mutex.lock()
                let waiting = Task { try await mutex.lock() }
                _ = try await redis.send("FLUSHALL")
                try await until("the turn is lost") { !lease.isHeld }
                try await waiting.value.release()
                try await mutex.withLock { #expect($0.isHeld) }
            }
        }

        @Test("without wake-ups the mutex comes back when the linger ends, and after `limit` turns")
        func withoutWakeUps() async throws {
            var configuration = longTTL
            configuration.usesWakeUps = false
            configuration.pollInterval = .milliseconds(20)
            try await withCoordinators(configuration: configuration) { _, one, two, redis in
                let mutex = try one.mutex("m", locality: .cohort(limit: 5, linger: .milliseconds(100)))
                try await mutex.withLock { _ in }
                let lingering = try await two.mutex("m").lock(timeout: .seconds(30))
                try await lingering.release()
                // A process that uses it all the time.
                let visits = Visits()
                try await withThrowingTaskGroup(of: Void.self) { group in
                    group.addTask {
                        while await visits.all.isEmpty { try await mutex.withLock { _ in } }
                    }
                    for _ in 0..<5 { try await two.mutex("m").withLock(timeout: .seconds(30)) { _ in } }
                    await visits.enter("two", 0)
                    try await group.waitForAll()
                }
                try await until("it is free") { try await Audit(redis).claims.isEmpty }
            }
        }

        @Test("a lost recall is made up for by the next comparison with Redis")
        func lostRecall() async throws {
            var configuration = CoordinatorConfiguration()
            configuration.ttl = .seconds(1)
            try await withCoordinators(configuration: configuration) { _, one, _, redis in
                let mutex = try one.mutex("m", locality: .cohort(linger: .seconds(60)))
                try await mutex.withLock { _ in }
                let other = try await ForeignNode(redis) { $0.replacingOccurrences(of: " recall'", with: " try'") }
                #expect(try await other.request("acquire", "m", ["mf", "1", "m"]) == ["0"])
                let id = await other.id(1)
                try await until("the waiter has it") { try await Audit(redis).resources["m"]?.holder == id }
            }
        }

        @Test("tasks on the client's executor that use the mutex all the time let others have it", arguments: [1, 4])
        func onExecutor(tasks: Int) async throws {
            try await withServer { _, redis, other in
                try await withCoordinator(redis: redis, configuration: longTTL) { one in
                    try await withCoordinator(redis: other, configuration: longTTL) { two in
                        let mutex = try one.mutex("m", locality: .cohort())
                        let stop = Flag()
                        try await withThrowingTaskGroup(of: Void.self) { group in
                            for _ in 0..<tasks {
                                group.addTask(executorPreference: redis.executor) {
                                    while !stop.isSet {
                                        try await mutex.withLock { _ in }
                                    }
                                }
                            }
                            for _ in 0..<20 { try await two.mutex("m").withLock(timeout: .seconds(30)) { _ in } }
                            stop.set()
                            try await group.waitForAll()
                        }
                    }
                }
            }
        }

        @Test("conditions, reentrancy and several locks work as with a strict mutex")
        func withOthers() async throws {
            try await withCoordinators { _, one, two, redis in
                let mutex = try one.mutex("m", isReentrant: true, locality: .cohort(linger: .seconds(60)))
                let condition = try mutex.condition("c")
                let visits = Visits()
                let waiter = Task {
                    try await mutex.withLock { lease in
                        let first = lease.fence
                        try await condition.wait(lease)
                        #expect(lease.isHeld && lease.fence > first)
                        await visits.enter("woken", lease.fence)
                    }
                }
                try await until("it waits for the condition") {
                    try await two.inspect("m#c")?.waiterCount == 1
                }
                try await mutex.withLock { _ in
                    try await mutex.withLock { _ in }
                    try await condition.notify()
                }
                try await waiter.value
                #expect(await visits.owners == ["woken"])
                let error = await errorOf {
                    try await mutex.withLock { try await condition.wait($0, timeout: .milliseconds(20)) }
                }
                #expect(error?.code == .timedOut)
                let other = try one.mutex("n", locality: .cohort())
                try await one.withLocks([other, mutex]) { #expect($0.count == 2 && $0.allSatisfy(\.isHeld)) }
                let plain = try one.mutex("m", locality: .cohort())
                #expect(
                    await errorOf { try await plain.withLock { _ in try await plain.withLock { _ in } } }?.code
                        == .invalidArgument)
                try await until("it is free") { try await Audit(redis).claims.count <= 1 }
                try await Audit(redis).check()
            }
        }

        @Test("a light switch and cohorts exclude each other, and fences grow")
        func lightSwitch() async throws {
            try await withCoordinators { _, one, two, redis in
                let mutex = try one.mutex("m", locality: .cohort(linger: .seconds(60)))
                let visits = Visits()
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for task in 0..<3 {
                        group.addTask {
                            for _ in 0..<40 {
                                try await mutex.withLock { lease in
                                    await visits.enter("task \(task)", lease.fence)
                                    await visits.leave()
                                }
                            }
                        }
                    }
                    group.addTask {
                        let light = try two.mutex("m").lightSwitch("readers")
                        for _ in 0..<40 {
                            try await light.withLock { lease in
                                await visits.enter("switch", lease.fence)
                                await visits.leave()
                            }
                        }
                    }
                    try await group.waitForAll()
                }
                #expect(await visits.overlaps == 0)
                #expect(await visits.hasGrowingFences)
                try await until("it is free") { try await two.mutex("m").tryLock()?.release() != nil }
                try await Audit(redis).check()
            }
        }

        @Test("a dropped lease ends its turn, and a shutdown ends all")
        func dropped() async throws {
            try await withServer { _, redis, other in
                let failure = try await withCoordinator(redis: redis, configuration: longTTL) { one in
                    let mutex = try one.mutex("m", locality: .cohort(linger: .seconds(60)))
                    _ = try await mutex.lock()
                    try await mutex.lock(timeout: .seconds(30)).release()
                    let lease = try await mutex.lock()
                    let waiting = Task { await errorOf { _ = try await mutex.lock() } }
                    try await until("it waits") { mutex.cohort?.waiterCount == 1 }
                    return (lease, waiting)
                }
                #expect(!failure.0.isHeld)
                #expect(await failure.1.value?.code == .stopped)
                #expect(await errorOf { try failure.0.check() }?.code == .stopped)
                let audit = try await Audit(other)
                #expect(audit.claims.isEmpty && audit.sessions.isEmpty)
            }
        }

        @Test("bad settings are refused")
        func refused() async throws {
            try await withCoordinators { _, one, _, _ in
                for locality: Locality in [
                    .cohort(limit: 0), .cohort(limit: 1_000_001), .cohort(linger: .seconds(-1)),
                    .cohort(linger: .seconds(61)),
                ] {
                    #expect(
                        await errorOf { _ = try one.mutex("m", locality: locality) }?.code == .invalidArgument)
                }
                let mutex = try one.mutex("m", locality: .cohort())
                #expect(await errorOf { _ = try await mutex.lock(timeout: .seconds(-1)) }?.code == .invalidArgument)
                try await one.semaphore("m", permits: 1).create()
                #expect(await errorOf { _ = try await mutex.lock() }?.code == .conflict)
            }
        }
    }
}
