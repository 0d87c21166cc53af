import Hiredis
import RedisDC
import RedisDCTesting
import TestSupport
import Testing

@testable import RedisDCTestSupport

extension PrimitiveTests {
    @Suite("Read-write lock", .serialized)
    struct ReadWriteLockTests {
        private static let policies: [ReadWriteLock.Policy] = [.fifo, .preferReaders, .preferWriters]

        @Test("readers hold the lock together, a writer holds it alone", arguments: policies)
        func exclusion(_ policy: ReadWriteLock.Policy) async throws {
            try await withCoordinators { _, one, two, redis in
                let inside = Inside()
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for number in 0..<40 {
                        let lock = try (number.isMultiple(of: 2) ? one : two).readWriteLock("l", policy: policy)
                        group.addTask {
                            for round in 0..<5 {
                                if (number + round).isMultiple(of: 4) {
                                    try await lock.withWriteLock { lease in await inside.write(lease.fence) }
                                } else {
                                    try await lock.withReadLock { _ in await inside.read() }
                                }
                            }
                        }
                    }
                    try await group.waitForAll()
                }
                #expect(await inside.faults == [])
                #expect(await inside.maxReaders > 1)
                let audit = try await Audit(redis)
                audit.check()
                #expect(audit.resources.isEmpty, "a lock that nobody holds or waits for leaves no keys")
            }
        }

        @Test("waiters enter in the order of the policy", arguments: policies)
        func order(_ policy: ReadWriteLock.Policy) async throws {
            try await withCoordinators { _, one, two, _ in
                let lock = try one.readWriteLock("l", policy: policy)
                let order = Names()
                func enter(_ name: String, _ after: Int, _ body: @escaping @Sendable () async throws -> Lease)
                    async throws
                    -> Task<Void, any Error>
                {
                    let task = Task {
                        let lease = try await body()
                        await order.add(name)
                        try await lease.release()
                    }
                    try await until("\(name) waits") { try await two.inspect("l")?.waiterCount == after }
                    return task
                }
                let first = try await lock.writeLock()
                let tasks = [
                    try await enter("r1", 1) { try await lock.readLock() },
                    try await enter("w1", 2) { try await lock.writeLock() },
                    try await enter("r2", 3) { try await lock.readLock() },
                    try await enter("w2", 4) { try await lock.writeLock() },
                ]
                try await first.release()
                for task in tasks { try await task.value }
                let names = await order.all
                switch policy {
                case .fifo: #expect(names == ["r1", "w1", "r2", "w2"])
                case .preferReaders: #expect(Set(names.prefix(2)) == ["r1", "r2"] && names.suffix(2) == ["w1", "w2"])
                case .preferWriters: #expect(names.prefix(2) == ["w1", "w2"] && Set(names.suffix(2)) == ["r1", "r2"])
                }
            }
        }

        @Test(
            "a reader waits for a waiting writer unless readers are preferred",
            arguments: policies)
        func readersPass(_ policy: ReadWriteLock.Policy) async throws {
            try await withCoordinators { _, one, two, redis in
                let lock = try one.readWriteLock("l", policy: policy)
                let first = try await lock.readLock()
                let writer = Task { try await lock.writeLock() }
                try await until("the writer waits") { try await two.inspect("l")?.waiterCount == 1 }
                let error = await errorOf { try await lock.readLock(timeout: .zero).release() }
                #expect(error?.code == (policy == .preferReaders ? nil : .timedOut))
                try await first.release()
                try await writer.value.release()
                try await Audit(redis).check()
            }
        }

        @Test("only preferred readers or writers overtake a waiter", arguments: policies)
        func bound(_ policy: ReadWriteLock.Policy) async throws {
            try await withCoordinators { _, one, two, _ in
                let lock = try one.readWriteLock("l", policy: policy)
                let other = try two.readWriteLock("l", policy: policy)
                let relay = 30
                // One reader after another, without a gap.
                var reader = try await lock.readLock()
                let writer = Task { try await other.writeLock() }
                try await until("the writer waits") { try await two.inspect("l")?.waiterCount == 1 }
                var passed = 0
                while passed < relay, let next = try? await lock.readLock(timeout: .zero) {
                    try await reader.release()
                    reader = next
                    passed += 1
                }
                #expect(passed == (policy == .preferReaders ? relay : 0))
                try await reader.release()
                // One writer after another, each in the queue before the last one releases.
                var current = try await writer.value
                let waiting = Task { try await other.readLock() }
                try await until("the reader waits") { try await two.inspect("l")?.waiterCount == 1 }
                passed = 0
                for _ in 0..<relay {
                    let next = Task { try await lock.writeLock() }
                    try await until("the writer waits too") { try await two.inspect("l")?.waiterCount == 2 }
                    try await current.release()
                    if policy != .preferWriters {
                        try await waiting.value.release()
                        current = try await next.value
                        break
                    }
                    current = try await next.value
                    passed += 1
                }
                #expect(passed == (policy == .preferWriters ? relay : 0))
                try await current.release()
                if policy == .preferWriters { try await waiting.value.release() }
            }
        }

        @Test("a writer that becomes a reader keeps its fence and admits readers, but no writer")
        func downgrade() async throws {
            try await withCoordinators { _, one, two, redis in
                let lock = try one.readWriteLock("l")
                let other = try two.readWriteLock("l")
                let lease = try await lock.writeLock()
                let fence = lease.fence
                let reader = Task { try await other.readLock() }
                try await until("it waits") { try await two.inspect("l")?.waiterCount == 1 }
                try await lock.downgrade(lease)
                #expect(lease.count == 1 && lease.fence == fence && lease.isHeld)
                try await reader.value.release()
                #expect(await errorOf { _ = try await other.writeLock(timeout: .zero) }?.code == .timedOut)
                try await Audit(redis).check()
                // A second time changes nothing.
                try await lock.downgrade(lease)
                try await lease.release()
                try await other.writeLock(timeout: .zero).release()
                #expect(await errorOf { try await lock.downgrade(lease) }?.code == .lost)
                try await Audit(redis).check()
            }
        }

        @Test("a lease of another lock is refused, also if the names are equal as Swift strings")
        func otherBytes() async throws {
            try await withCoordinators { _, one, _, _ in
                let lease = try await one.readWriteLock("cafe\u{301}").writeLock()
                let lock = try one.readWriteLock("caf\u{E9}")
                #expect(await errorOf { try await lock.downgrade(lease) }?.code == .invalidArgument)
                try await lease.release()
            }
        }

        @Test("a reader's task gets an error when it asks for the write lock, and a writer's task may read")
        func upgrade() async throws {
            try await withCoordinators { _, one, _, _ in
                let lock = try one.readWriteLock("l")
                let error = await errorOf {
                    try await lock.withReadLock { _ in try await lock.withWriteLock { _ in } }
                }
                #expect(error?.code == .invalidArgument)
                let fences = try await lock.withWriteLock { outer in
                    try await lock.withReadLock { inner in
                        try await lock.withWriteLock { [outer.fence, inner.fence, $0.fence] }
                    }
                }
                #expect(Set(fences).count == 1)
            }
        }

        @Test("a node with another policy gets a conflict")
        func conflict() async throws {
            try await withCoordinators { _, one, two, _ in
                let lease = try await one.readWriteLock("l").readLock()
                let error = await errorOf { _ = try await two.readWriteLock("l", policy: .preferWriters).readLock() }
                #expect(error?.code == .conflict)
                #expect(error?.message.contains("read-write lock") == true)
                #expect(await errorOf { _ = try await two.mutex("l").lock() }?.code == .conflict)
                try await lease.release()
            }
        }
    }
}

/// The readers and writers inside at a time, and violations of the exclusion.
private actor Inside {
    private(set) var faults: [String] = []
    private(set) var maxReaders = 0
    private var readers = 0
    private var writers = 0
    private var lastFence: UInt64 = 0

    func read() async {
        readers += 1
        maxReaders = max(maxReaders, readers)
        if writers > 0 { faults.append("a reader is in with a writer") }
        for _ in 0..<20 { await Task.yield() }
        readers -= 1
    }

    func write(_ fence: UInt64) async {
        writers += 1
        if writers > 1 || readers > 0 {
            faults.append("a writer is in with \(readers) readers, \(writers - 1) writers")
        }
        if fence <= lastFence { faults.append("the fence went from \(lastFence) to \(fence)") }
        lastFence = fence
        for _ in 0..<20 { await Task.yield() }
        writers -= 1
    }
}
