// The bodies of `withLock` and its siblings: whose state they may touch, and what ends them.
import Hiredis
import RedisDC
import Synchronization
import TestSupport
import Testing

@testable import RedisDCTestSupport

extension PrimitiveTests {
    @Suite("Bodies that hold a lease", .serialized)
    struct ScopedBodyTests {
        @Test("a body runs on the actor that calls, and uses its state without copies")
        func isolation() async throws {
            try await withCoordinators { _, coordinator, _, _ in
                let ledger = Ledger(coordinator)
                try await ledger.useAll()
                #expect(await ledger.entries == 12)
                #expect(try await ledger.useMainActor() == 1)
                #expect(try await ledger.callsHelperOnItself())
            }
        }

        @Test("a body returns a value that is not Sendable, and changes the caller's variables")
        func results() async throws {
            final class Page { var lines = 0 }
            try await withCoordinators { _, coordinator, _, _ in
                var count = 0
                let page = try await coordinator.mutex("m").withLock { _ in
                    count += 1
                    return Page()
                }
                page.lines += count
                #expect(page.lines == 1)
            }
        }

        @Test("calls of one actor's method exclude each other, and lose no update")
        func exclusion() async throws {
            try await withCoordinators { _, one, two, _ in
                let (first, second) = (Ledger(one), Ledger(two))
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for number in 0..<40 { group.addTask { try await (number % 2 == 0 ? first : second).add() } }
                    try await group.waitForAll()
                }
                #expect(await first.entries + second.entries == 40)
                #expect(await first.overlaps + second.overlaps == 0)
            }
        }

        @Test("a lost lease cancels the body, and withLock throws .lost")
        func loss() async throws {
            try await withCoordinators { _, one, two, _ in
                let mutex = try one.mutex("m")
                let (isInside, wasCancelled) = (Flag(), Flag())
                let holding = Task {
                    try await mutex.withLock { _ in
                        isInside.set()
                        do { try await Task.sleep(for: .seconds(3600)) } catch {
                            wasCancelled.set()
                            throw error
                        }
                    }
                }
                try await until("the body runs") { isInside.isSet }
                try await two.forceRelease("m")
                #expect(await errorOf { try await holding.value }?.code == .lost)
                #expect(wasCancelled.isSet)
                #expect(!holding.isCancelled)
            }
        }

        @Test("cancelling the caller cancels the body, and the lock is free afterwards")
        func cancel() async throws {
            try await withCoordinators { _, one, two, _ in
                let mutex = try one.mutex("m")
                let isInside = Flag()
                let holding = Task {
                    try await mutex.withLock { _ in
                        isInside.set()
                        try await Task.sleep(for: .seconds(3600))
                    }
                }
                try await until("the body runs") { isInside.isSet }
                holding.cancel()
                await #expect(throws: CancellationError.self) { try await holding.value }
                try await two.mutex("m").lock(timeout: .seconds(10)).release()
            }
        }

        @Test("the caller's task-local values are visible in the body")
        func taskLocals() async throws {
            try await withCoordinators { _, coordinator, _, _ in
                let seen = try await Marker.$value.withValue(7) {
                    try await coordinator.mutex("m").withLock { _ in Marker.value }
                }
                #expect(seen == 7)
            }
        }

        @Test("a shutdown cancels the body and waits for it")
        func shutdown() async throws {
            try await withServer { _, redis, _ in
                let coordinator = try Coordinator(redis: redis)
                let running = Task { await coordinator.run() }
                let (isInside, isCancelled, mayEnd, hasEnded) = (Flag(), Flag(), Flag(), Flag())
                let holding = Task {
                    try await coordinator.mutex("m").withLock { _ in
                        isInside.set()
                        try? await Task.sleep(for: .seconds(3600))
                        isCancelled.set()
                        while !mayEnd.isSet { await Task.yield() }
                        hasEnded.set()
                    }
                }
                try await until("the body runs") { isInside.isSet }
                let stopping = Task {
                    running.cancel()
                    await running.value
                    return hasEnded.isSet
                }
                try await until("the body is cancelled") { isCancelled.isSet }
                mayEnd.set()
                #expect(await stopping.value, "the shutdown ended before the body")
                _ = await holding.result
            }
        }
    }
}

final class Flag: Sendable {
    private let value = Atomic(false)
    var isSet: Bool { value.load(ordering: .acquiring) }
    func set() { value.store(true, ordering: .releasing) }
}

private enum Marker {
    @TaskLocal static var value = 0
}

/// The isolation of a body in a function that inherits its caller's.
nonisolated(nonsending) private func isolationOfBody(_ coordinator: Coordinator) async throws -> (any Actor)? {
    try await coordinator.mutex("m").withLock { _ in #isolation }
}

/// State that only its actor may touch. `add` would lose updates without the lock and without the
/// isolation.
private actor Ledger {
    private(set) var entries = 0
    private(set) var overlaps = 0
    private var isInside = false
    private let coordinator: Coordinator

    init(_ coordinator: Coordinator) { self.coordinator = coordinator }

    func add() async throws {
        try await coordinator.mutex("ledger").withLock { _ in
            if isInside { overlaps += 1 }
            isInside = true
            let before = entries
            for _ in 0..<10 { await Task.yield() }
            entries = before + 1
            isInside = false
        }
    }

    private func note() {
        preconditionIsolated()
        entries += 1
    }

    func useAll() async throws {
        try await coordinator.mutex("m").withLock { _ in
            entries += 1
            preconditionIsolated()
            await Task.yield()
            note()
            entries -= 1
        }
        let lock = try coordinator.readWriteLock("rw")
        try await lock.withReadLock { _ in note() }
        try await lock.withWriteLock { _ in note() }
        let pool = try coordinator.semaphore("pool", permits: 3)
        try await pool.withPermit { _ in note() }
        try await pool.withPermits(2) { _ in note() }
        try await coordinator.withLocks([coordinator.mutex("a"), coordinator.mutex("b")]) { _ in note() }
        try await coordinator.mutex("m").lightSwitch("g").withLock { _ in note() }
        try await coordinator.latch("l", count: 1).withParticipation { _ in note() }
        try await coordinator.phaser("p").withParty { _ in note() }
        try await coordinator.doubleBarrier("d", parties: 1).run { note() }
        try await coordinator.election("e").withLeadership { _ in note() }
        let buffer = try coordinator.boundedBuffer("k", of: Int.self, capacity: 1)
        try await buffer.put(1)
        try await buffer.withItem { _ in note() }
    }

    func callsHelperOnItself() async throws -> Bool { try await isolationOfBody(coordinator) === self }

    @MainActor
    func useMainActor() async throws -> Int {
        var count = 0
        try await coordinator.mutex("m").withLock { _ in
            MainActor.preconditionIsolated()
            await Task.yield()
            MainActor.preconditionIsolated()
            count += 1
        }
        return count
    }
}
