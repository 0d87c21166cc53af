// A lock belongs to the task that runs its body, and not to that task's children.
import Hiredis
import RedisDC
import Synchronization
import TestSupport
import Testing

@testable import RedisDCTestSupport

extension PrimitiveTests {
    @Suite("Ownership of locks", .serialized)
    struct OwnershipTests {
        @Test("a task enters a reentrant mutex again, also through the bodies of other primitives")
        func reentry() async throws {
            try await withCoordinators { _, one, two, _ in
                let mutex = try one.mutex("m", isReentrant: true)
                let pool = try one.semaphore("pool", permits: 2)
                let other = try one.readWriteLock("rw")
                let fences = try await mutex.withLock { outer in
                    try await pool.withPermit { _ in
                        try await other.withReadLock { _ in
                            try await mutex.withLock(timeout: .zero) { inner in
                                try await other.withReadLock(timeout: .zero) { _ in [outer.fence, inner.fence] }
                            }
                        }
                    }
                }
                #expect(Set(fences).count == 1)
                try await two.mutex("m").lock(timeout: .seconds(10)).release()
            }
        }

        @Test(
            "a task that holds a mutex that is not reentrant is told so through the bodies of others",
            .timeLimit(.minutes(5)))
        func notReentrant() async throws {
            try await withCoordinators { _, one, _, _ in
                let mutex = try one.mutex("m")
                let error = await errorOf {
                    try await mutex.withLock { _ in
                        try await one.semaphore("pool", permits: 1).withPermit { _ in try await mutex.withLock { _ in }
                        }
                    }
                }
                #expect(error?.code == .invalidArgument)
                #expect(error?.message.contains("mutex \"m\"") == true)
            }
        }

        @Test("a child task waits for the mutex that its parent's body holds", arguments: [false, true])
        func children(isReentrant: Bool) async throws {
            try await withCoordinators { _, one, _, _ in
                let mutex = try one.mutex("m", isReentrant: isReentrant)
                let codes = try await mutex.withLock { _ in
                    try await Self.codes { try await mutex.withLock(timeout: .milliseconds(20)) { _ in } }
                }
                #expect(codes == Array(repeating: .timedOut, count: 4))
                // The same task is the owner still.
                let error = await errorOf {
                    try await mutex.withLock { _ in try await mutex.withLock(timeout: .zero) { _ in } }
                }
                #expect(error?.code == (isReentrant ? nil : .invalidArgument))
            }
        }

        @Test("a child task of a reader or writer waits like any other task")
        func childrenOfReaders() async throws {
            try await withCoordinators { _, one, _, _ in
                let lock = try one.readWriteLock("rw")
                let limit = Duration.milliseconds(20)
                let wroteUnderRead = try await lock.withReadLock { _ in
                    try await Self.codes { try await lock.withWriteLock(timeout: limit) { _ in } }
                }
                #expect(wroteUnderRead == Array(repeating: .timedOut, count: 4))
                for writes in [false, true] {
                    let codes = try await lock.withWriteLock { _ in
                        try await Self.codes {
                            if writes {
                                try await lock.withWriteLock(timeout: limit) { _ in }
                            } else {
                                try await lock.withReadLock(timeout: limit) { _ in }
                            }
                        }
                    }
                    #expect(codes == Array(repeating: .timedOut, count: 4))
                }
                // A child reads together with its parent, under a lease of its own.
                try await lock.withReadLock { outer in
                    async let child = lock.withReadLock { inner in inner.fence }
                    let fence = try await child
                    #expect(fence != outer.fence)
                }
            }
        }

        @Test("a child task of a mutex's body waits for the groups of the mutex")
        func childrenOfGroups() async throws {
            try await withCoordinators { _, one, _, _ in
                let mutex = try one.mutex("m")
                let group = try mutex.lightSwitch("g")
                let codes = try await mutex.withLock { _ in
                    #expect(await errorOf { try await group.withLock { _ in } }?.code == .invalidArgument)
                    return try await Self.codes { try await group.withLock(timeout: .milliseconds(20)) { _ in } }
                }
                #expect(codes == Array(repeating: .timedOut, count: 4))
            }
        }

        @Test("two tasks made in the body of a write lock exclude each other")
        func siblings() async throws {
            try await withCoordinators { _, one, _, _ in
                let lock = try one.readWriteLock("rw")
                let inside = Occupancy()
                let tasks = try await lock.withWriteLock { _ in
                    let tasks = (0..<2).map { _ in
                        Task {
                            for _ in 0..<10 {
                                try await lock.withWriteLock { _ in
                                    inside.enter()
                                    for _ in 0..<20 { await Task.yield() }
                                    inside.leave()
                                }
                            }
                        }
                    }
                    // They wait for this body.
                    try await until("both wait") { try await one.inspect("rw")?.waiterCount == 2 }
                    #expect(inside.most == 0)
                    return tasks
                }
                for task in tasks { try await task.value }
                #expect(inside.most == 1)
            }
        }

        @Test("several locks taken together are owned by the body's task, and not by its children")
        func severalLocks() async throws {
            try await withCoordinators { _, one, _, _ in
                let (a, b) = (try one.mutex("a", isReentrant: true), try one.mutex("b"))
                try await one.withLocks([b, a]) { leases in
                    let fence = try await a.withLock(timeout: .zero) { $0.fence }
                    #expect(fence == leases[1].fence)
                    #expect(try await one.withLocks([a], timeout: .zero) { $0[0].fence } == fence)
                    #expect(await errorOf { try await one.withLocks([a, b]) { _ in } }?.code == .invalidArgument)
                    let codes = try await Self.codes {
                        try await one.withLocks([a], timeout: .milliseconds(20)) { _ in }
                    }
                    #expect(codes == Array(repeating: .timedOut, count: 4))
                }
            }
        }

        @Test("a task that outlives the body never takes a new task for the owner")
        func afterTheBody() async throws {
            try await withCoordinators { _, one, _, _ in
                let mutex = try one.mutex("m")
                let bodyHasEnded = Flag()
                let later = try await mutex.withLock { _ in
                    Task {
                        while !bodyHasEnded.isSet { await Task.yield() }
                        // New tasks, one of which may get the memory of the body's task.
                        for _ in 0..<300 {
                            try await Task { try await mutex.withLock { _ in } }.value
                            try await withThrowingTaskGroup(of: Void.self) { group in
                                group.addTask { try await mutex.withLock { _ in } }
                                try await group.waitForAll()
                            }
                        }
                    }
                }
                bodyHasEnded.set()
                #expect(await errorOf { try await later.value } == nil)
            }
        }

        /// Returns the error codes of `body` in an `async let`, in a task group, in a `Task {}`,
        /// and in a child of that task.
        private static func codes(
            _ body: @escaping @Sendable () async throws -> Void
        ) async throws -> [RedisDCError.Code?] {
            async let first = errorOf(body)?.code
            let second = await withTaskGroup(of: RedisDCError.Code?.self) { group in
                group.addTask { await errorOf(body)?.code }
                return await group.next()!
            }
            let third = await Task { await errorOf(body)?.code }.value
            let fourth = await Task {
                async let nested = errorOf(body)?.code
                return await nested
            }.value
            return [await first, second, third, fourth]
        }
    }
}

private final class Occupancy: Sendable {
    private let now = Atomic(0)
    private let highest = Atomic(0)
    var most: Int { highest.load(ordering: .acquiring) }
    func enter() {
        highest.max(now.add(1, ordering: .acquiringAndReleasing).newValue, ordering: .acquiringAndReleasing)
    }
    func leave() { now.subtract(1, ordering: .acquiringAndReleasing) }
}
