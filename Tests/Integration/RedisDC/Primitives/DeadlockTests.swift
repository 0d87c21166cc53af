import RedisDC
import TestSupport
import Testing

@testable import RedisDCTestSupport

extension PrimitiveTests {
    @Suite("Deadlocks of processes", .serialized)
    struct DeadlockTests {
        @Test(
            "two processes that hold what the other waits for are found with the locks' names, and mere waiters are not"
        )
        func two() async throws {
            try await withCoordinators { _, one, two, _ in
                #expect(try await one.deadlocks().isEmpty)
                let a = try await one.mutex("a").lock()
                let b = try await two.mutex("b").lock()
                let first = Task { try await one.mutex("b").lock() }
                try await until("one waits") { try await one.inspect("b")?.waiterCount == 1 }
                #expect(try await two.deadlocks().isEmpty)
                let second = Task { try await two.mutex("a").lock() }
                try await until("both wait") { try await one.inspect("a")?.waiterCount == 1 }
                let found = try await two.deadlocks()
                #expect(found.count == 1)
                #expect(Set(found.first?.links.map(\.name) ?? []) == ["a", "b"])
                second.cancel()
                _ = await second.result
                // A cancelled call returns before Redis has its cancellation.
                try await until("there is no deadlock") { try await one.deadlocks().isEmpty }
                try await b.release()
                try await first.value.release()
                try await a.release()
            }
        }
    }
}
