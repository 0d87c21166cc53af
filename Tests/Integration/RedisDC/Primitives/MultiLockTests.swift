import Hiredis
import RedisDC
import TestSupport
import Testing

@testable import RedisDCTestSupport

extension PrimitiveTests {
    @Suite("Several locks", .serialized)
    struct MultiLockTests {
        @Test("tasks that lock the same mutexes in different orders do not deadlock, and hold all of them")
        func ordered() async throws {
            try await withCoordinators { _, one, two, redis in
                let names = ["a", "b", "c"]
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for number in 0..<12 {
                        let coordinator = number.isMultiple(of: 2) ? one : two
                        let wanted = [names[number % 3], names[(number + 1) % 3]]
                        let mutexes = try (wanted + wanted.prefix(1)).map { try coordinator.mutex($0) }
                        group.addTask {
                            for _ in 0..<20 {
                                try await coordinator.withLocks(mutexes, timeout: .seconds(60)) { leases in
                                    #expect(leases.map(\.name) == mutexes.map(\.name))
                                    #expect(leases[0] === leases[2], "a mutex that is listed twice is locked once")
                                    let areHeld = leases.allSatisfy { $0.isHeld }
                                    #expect(areHeld)
                                    for name in wanted {
                                        let inside = try await redis.send("INCR", .string(name)).integer
                                        #expect(inside == 1)
                                    }
                                    for name in wanted { _ = try await redis.send("DECR", .string(name)) }
                                }
                            }
                        }
                    }
                    try await group.waitForAll()
                }
                #expect(try await Audit(redis).resources.isEmpty)
            }
        }

        @Test("a body that does not use the leases holds all locks until it returns or throws")
        func bodyWithoutLeases() async throws {
            try await withCoordinators { _, one, two, _ in
                let mutexes = try ["b", "a"].map { try one.mutex($0) }
                let others = try ["a", "b"].map { try two.mutex($0) }
                let free = try await one.withLocks(mutexes, timeout: .seconds(60)) {
                    var free = 0
                    for mutex in others where try await mutex.tryLock() != nil { free += 1 }
                    return free
                }
                #expect(free == 0)
                try await two.withLocks(others, timeout: .zero) {}
                await #expect(throws: CancellationError.self) {
                    try await one.withLocks(mutexes) { throw CancellationError() }
                }
                try await two.withLocks(others, timeout: .zero) {}
            }
        }

        @Test("when one mutex cannot be locked in time, none stays locked")
        func allOrNone() async throws {
            try await withCoordinators { _, one, two, _ in
                let mutexes = try ["b", "a"].map { try one.mutex($0) }
                let lease = try await two.mutex("b").lock()
                for timeout in [Duration.zero, .milliseconds(20)] {
                    let error = await errorOf { try await one.withLocks(mutexes, timeout: timeout) { _ in } }
                    #expect(error?.code == .timedOut)
                    try await two.mutex("a").lock(timeout: .seconds(10)).release()
                }
                try await lease.release()
            }
        }

        @Test("when one lock is lost, the body is cancelled and .lost is thrown")
        func loss() async throws {
            try await withCoordinators { _, one, two, _ in
                let mutexes = try ["b", "a"].map { try one.mutex($0) }
                for name in ["a", "b"] {
                    let holding = Task {
                        try await one.withLocks(mutexes) { _ in try await Task.sleep(for: .seconds(3600)) }
                    }
                    try await until("both are held") {
                        for name in ["a", "b"] where try await two.inspect(name)?.holderCount != 1 { return false }
                        return true
                    }
                    try await two.forceRelease(name)
                    #expect(await errorOf { try await holding.value }?.code == .lost)
                    try await two.withLocks(["a", "b"].map { try two.mutex($0) }, timeout: .seconds(10)) { _ in }
                }
            }
        }

        @Test("no mutexes, and mutexes of another coordinator")
        func edges() async throws {
            try await withCoordinators { _, one, two, _ in
                let count = try await one.withLocks([]) { $0.count }
                #expect(count == 0)
                let error = await errorOf {
                    try await one.withLocks([one.mutex("a"), two.mutex("b")]) { _ in }
                }
                #expect(error?.code == .invalidArgument)
                #expect(error?.message.contains("\"b\"") == true)
            }
        }

        @Test("mutexes whose names are equal as Swift strings, but not in bytes, are two mutexes")
        func names() async throws {
            try await withCoordinators { _, coordinator, other, _ in
                let (composed, decomposed) = ("caf\u{E9}", "cafe\u{301}")
                let mutexes = try [composed, decomposed].map { try coordinator.mutex($0) }
                try await coordinator.withLocks(mutexes, timeout: .seconds(10)) { leases in
                    #expect(leases[0] !== leases[1])
                    for name in [composed, decomposed] {
                        let error = await errorOf { _ = try await other.mutex(name).lock(timeout: .zero) }
                        #expect(error?.code == .timedOut)
                    }
                }
                try await mutexes[0].withLock { _ in
                    // Not the mutex that is held already: it is locked, too.
                    try await mutexes[1].withLock(timeout: .seconds(10)) { _ in
                        let error = await errorOf { _ = try await other.mutex(decomposed).lock(timeout: .zero) }
                        #expect(error?.code == .timedOut)
                    }
                }
            }
        }
    }
}
