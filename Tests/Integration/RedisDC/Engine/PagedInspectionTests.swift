import RedisDC
import TestSupport
import Testing

@testable import RedisDCTestSupport

extension EngineTests {
    @Suite("Pages of an inspection", .serialized)
    struct PagedInspectionTests {
        @Test("an inspection of more holders and waiters than a page has lists each once, up to the limit")
        func pages() async throws {
            try await withCoordinators { _, one, two, _ in
                let semaphore = try one.semaphore("s", permits: 600)
                var leases: [Lease] = []
                for _ in 0..<600 { leases.append(try await semaphore.acquireLease()) }
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 0..<300 { group.addTask { try await semaphore.wait() } }
                    try await until("all wait") { try await two.inspect("s", limit: 1)?.waiterCount == 300 }
                    let all = try #require(try await two.inspect("s", limit: 10_000))
                    #expect(all.holderCount == 600 && Set(all.holders.map(\.id)).count == 600)
                    #expect(all.holders.count == 600 && all.waiters.count == 300)
                    #expect(Set(all.waiters.map(\.id)).count == 300)
                    // In the order of the queue.
                    #expect(all.waiters.map(\.since) == all.waiters.map(\.since).sorted())
                    let some = try #require(try await two.inspect("s", limit: 200))
                    #expect(some.holders.map(\.id) == all.holders.prefix(200).map(\.id))
                    #expect(some.waiters.map(\.id) == all.waiters.prefix(200).map(\.id))
                    try await semaphore.signal(300)
                    try await group.waitForAll()
                }
                for lease in leases { try await lease.release() }
            }
        }
    }
}
