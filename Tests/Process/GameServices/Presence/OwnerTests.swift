import GameServices
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import GameServicesTestSupport

extension PresenceTests {
    @Suite("Owners")
    struct OwnerTests {
        @Test("a client that moves to another node before its process has died does not leave with the process")
        func movesFromDeadProcess() async throws {
            try await withNodes(configure: { $0.ttl = .seconds(5) }) { redis, one, _, server in
                let bucket = try one.bucket("room")
                let watcher = try await Watcher.start(bucket)
                let node = try Child("services-worker", ["presence-serve", server.url, "room", "2", "10000"])
                try await until("it serves") { try await redis.send("LLEN", "log").integer == 1 }
                _ = try await bucket.connect(user: "c0", client: "c0")
                try await node.kill9()
                try await watcher.until("the client that has not moved leaves") { $0.leaves.count == 1 }
                #expect(watcher.state.leaves.map(\.key) == ["c1"])
                #expect(watcher.state.objects.keys.sorted() == ["c0"] && watcher.state.faults == [])
            }
        }
    }
}
