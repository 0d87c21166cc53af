import Hiredis
import RedisDC
import RedisDCTesting
import TestRandom
import TestSupport
import Testing

@testable import RedisDCTestSupport

extension PrimitiveTests {
    @Suite("Light switch", .serialized)
    struct LightSwitchTests {
        @Test("the first member acquires the mutex for the group, and the last one releases it")
        func together() async throws {
            try await withCoordinators { _, one, two, redis in
                let room = try one.mutex("room")
                let first = try await room.lightSwitch("readers").lock()
                let second = try await two.mutex("room").lightSwitch("readers").lock()
                #expect(second.fence > first.fence)
                #expect(try await room.tryLock() == nil)
                #expect(
                    await errorOf { _ = try await room.lightSwitch("cleaners").lock(timeout: .zero) }?.code == .timedOut
                )
                try await Audit(redis).check()
                try await first.release()
                #expect(try await room.tryLock() == nil)
                try await second.release()
                let alone = try #require(try await room.tryLock())
                #expect(alone.fence > second.fence)
                try await alone.release()
                let audit = try await Audit(redis)
                audit.check()
                #expect(audit.groups.isEmpty && audit.resources.isEmpty)
            }
        }

        @Test("a body that does not use the lease is a member of the group until it returns or throws")
        func bodyWithoutLease() async throws {
            try await withCoordinators { _, one, two, _ in
                let (group, other) = (try one.mutex("room").lightSwitch("readers"), try two.mutex("room"))
                let isHeld = try await group.withLock(timeout: .seconds(60)) {
                    try await other.lightSwitch("readers").withLock(timeout: .zero) {}
                    return try await other.tryLock() == nil
                }
                #expect(isHeld)
                try await other.lock(timeout: .zero).release()
                await #expect(throws: CancellationError.self) {
                    try await group.withLock { throw CancellationError() }
                }
                try await other.lock(timeout: .zero).release()
            }
        }

        @Test("when the first waiter enters, its whole group enters with it, and no other")
        func waitersTogether() async throws {
            try await withCoordinators { _, one, two, redis in
                let room = try one.mutex("room")
                let held = try await room.lock()
                let names = Names()
                func wait(_ name: String, _ body: @escaping @Sendable () async throws -> Lease) async throws
                    -> Task<Lease, any Error>
                {
                    let count = try await two.inspect("room")?.waiterCount ?? 0
                    let task = Task {
                        let lease = try await body()
                        await names.add(name)
                        return lease
                    }
                    try await until("it waits") { try await two.inspect("room")?.waiterCount == count + 1 }
                    return task
                }
                let a = try await wait("reader") { try await room.lightSwitch("readers").lock() }
                let writer = try await wait("writer") { try await two.mutex("room").lock() }
                let b = try await wait("reader") { try await two.mutex("room").lightSwitch("readers").lock() }
                let c = try await wait("cleaner") { try await room.lightSwitch("cleaners").lock() }
                let d = try await wait("reader") { try await room.lightSwitch("readers").lock() }
                try await Audit(redis).check()
                try await held.release()
                let readers = [try await a.value, try await b.value, try await d.value]
                #expect(await names.all == ["reader", "reader", "reader"])
                let audit = try await Audit(redis)
                audit.check()
                #expect(audit.resources["room"]?.waiting == 2)
                // A reader that comes now enters before the writer.
                let late = try await two.mutex("room").lightSwitch("readers").lock()
                for lease in readers { try await lease.release() }
                #expect(await names.all.count == 3)
                try await late.release()
                try await writer.value.release()
                try await c.value.release()
                #expect(await names.all.suffix(2) == ["writer", "cleaner"])
                try await Audit(redis).check()
            }
        }

        @Test("when the first waiter gives up, the group waits at the place of the next one")
        func givesUp() async throws {
            try await withCoordinators { _, one, two, redis in
                let room = try one.mutex("room")
                let readers = try room.lightSwitch("readers")
                let held = try await room.lock()
                let first = Task { try await readers.lock() }
                try await until("it waits") { try await two.inspect("room")?.waiterCount == 1 }
                let writer = Task { try await two.mutex("room").lock() }
                try await until("it waits") { try await two.inspect("room")?.waiterCount == 2 }
                let second = Task { try await readers.lock() }
                try await until("it waits") { try await two.inspect("room")?.waiterCount == 3 }
                first.cancel()
                #expect(await errorOf { _ = try await first.value }?.code == .cancelled)
                try await Audit(redis).check()
                try await held.release()
                let alone = try await writer.value
                #expect(
                    await errorOf { _ = try await readers.lock(timeout: .milliseconds(20)) }?.code == .timedOut)
                try await alone.release()
                try await second.value.release()
                try await Audit(redis).check()
            }
        }

        @Test("a group with more members than one script admits enters completely")
        func many() async throws {
            try await withCoordinators { _, one, two, redis in
                let room = try one.mutex("room")
                let held = try await room.lock()
                let count = 300
                let tasks = try (0..<count).map { number in
                    let group = try (number.isMultiple(of: 2) ? one : two).mutex("room").lightSwitch("readers")
                    return Task { try await group.lock(timeout: .seconds(60)) }
                }
                try await until("all wait") { try await two.inspect("room", limit: 1)?.waiterCount == count }
                let writer = Task { try await two.mutex("room").lock() }
                try await until("it waits") { try await two.inspect("room", limit: 1)?.waiterCount == count + 1 }
                try await held.release()
                // All have entered before any leaves: none waited for another to leave.
                var leases: [Lease] = []
                for task in tasks { leases.append(try await task.value) }
                try await Audit(redis).check()
                for lease in leases { try await lease.release() }
                try await writer.value.release()
                let audit = try await Audit(redis)
                audit.check()
                #expect(!audit.lines.contains { $0[0] == UInt8(ascii: "u") })
            }
        }

        @Test("a group takes one permit of a semaphore, and a semaphore made after destroying it is free")
        func semaphore() async throws {
            try await withCoordinators { _, one, two, redis in
                let seats = try one.semaphore("seats", permits: 2)
                let family = try seats.lightSwitch("family")
                let parents = [try await family.lock(), try await family.lock()]
                #expect(try await seats.value == 1)
                let club = try await two.semaphore("seats", permits: 2).lightSwitch("club").lock()
                #expect(try await seats.value == 0)
                try await Audit(redis).check()
                #expect(try await seats.destroy())
                #expect(try await seats.create())
                #expect(try await seats.value == 2)
                // The group that holds a permit of the old semaphore holds none of the new one.
                let child = try await family.lock()
                #expect(try await seats.value == 1)
                for lease in parents + [club] { try await lease.release() }
                #expect(try await seats.value == 1)
                try await child.release()
                #expect(try await seats.value == 2)
                try await Audit(redis).check()
            }
        }

        @Test("a task that holds the mutex alone gets an error when it enters a group")
        func itself() async throws {
            try await withCoordinators { _, one, _, _ in
                let room = try one.mutex("room")
                let error = await errorOf {
                    try await room.withLock { _ in try await room.lightSwitch("readers").withLock { _ in } }
                }
                #expect(error?.code == .invalidArgument)
                #expect(await errorOf { _ = try room.lightSwitch("") }?.code == .invalidArgument)
                #expect(await errorOf { _ = try room.lightSwitch("a\0b") }?.code == .invalidArgument)
            }
        }

        @Test(
            "in a random mix of two groups and single holders, no two of them are inside together",
            arguments: testSeeds(0..<4)
        )
        func exclusion(seed: UInt64) async throws {
            try await withCoordinators { _, one, two, redis in
                let inside = Inside()
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for number in 0..<12 {
                        let room = try (number.isMultiple(of: 2) ? one : two).mutex("room")
                        group.addTask {
                            var random = SplitMix(seed: seed &* 100 &+ UInt64(number))
                            for _ in 0..<40 {
                                let kind = ["a", "b", ""][Int.random(in: 0..<3, using: &random)]
                                let limit: Duration? =
                                    Bool.random(using: &random)
                                    ? .microseconds(Int.random(in: 0...5000, using: &random)) : nil
                                do {
                                    let lease =
                                        kind.isEmpty
                                        ? try await room.lock(timeout: limit)
                                        : try await room.lightSwitch(kind).lock(timeout: limit)
                                    await inside.enter(kind)
                                    if Bool.random(using: &random) { await Task.yield() }
                                    await inside.leave(kind)
                                    try await lease.release()
                                } catch let error as RedisDCError where error.code == .timedOut {}
                            }
                        }
                    }
                    try await group.waitForAll()
                }
                #expect(await inside.faults == 0)
                #expect(await inside.maxTogether > 1)
                let audit = try await Audit(redis)
                audit.check()
                #expect(audit.groups.isEmpty && audit.claims.isEmpty)
            }
        }

        @Test("a recheck that leaves waiters of two groups says once that there is more to do")
        func recheckOfTwoGroups() async throws {
            try await withServer { _, redis, _ in
                let node = try await ForeignNode(redis)
                func wait(in group: RedisArgument, _ count: Int) async throws {
                    for _ in 0..<count {
                        let arguments: [RedisArgument] = ["sf", "0", "t", 1, "0", "1", group]
                        #expect(try await node.request("acquireInGroup", "s", arguments) == ["0"])
                    }
                }
                // One script grants to 96 waiters. The second group enters while the first one has waiters behind it.
                try await wait(in: "one", 1)
                try await wait(in: "two", 130)
                try await wait(in: "one", 200)
                for _ in 0..<2 { #expect(try await node.request("signalGroups", "s", ["sf", "0"]) == ["more", "1"]) }
                // The elements of nested arrays would be among these.
                for _ in 0..<2 { #expect(try await node.run("recheckGroups", ["s"]) == ["more", "1"]) }
                #expect(try await node.run("recheckGroups", ["s"]) == ["1"])
                let audit = try await Audit(redis)
                audit.check()
                #expect(audit.claims.count == 331 && audit.claims.values.allSatisfy { $0.state == "h" })
            }
        }
    }
}

/// The holders inside the room: members of one group, or a single holder (whose group is empty).
private actor Inside {
    private var group = ""
    private var count = 0
    private(set) var faults = 0
    private(set) var maxTogether = 0

    func enter(_ kind: String) {
        if count > 0, kind.isEmpty || kind != group { faults += 1 }
        group = kind
        count += 1
        maxTogether = max(maxTogether, count)
    }

    func leave(_ kind: String) { count -= 1 }
}
