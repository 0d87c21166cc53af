import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import GameServices
@testable import GameServicesTestSupport

extension PresenceTests {
    @Suite("Many objects", .serialized)
    struct CrowdTests {
        @Test("with 35,000 objects, a change runs as many commands as with 10, and a join reads bounded pages")
        func crowd() async throws {
            try await withNodes(configure: {
                // No heartbeat comes in between.
                $0.ttl = .seconds(3600)
                $0.maxLoggedBytes = 8 << 20
            }) { redis, one, other, _ in
                let bucket = try one.bucket("room")
                let owner = try await bucket.connect(user: "crowd", client: "node")
                try await fill(bucket, owner, 0..<10)
                let few = try await cost(redis) { try await bucket.put("one more", "", owner: owner) }
                try await bucket.remove("one more", owner: owner)
                try await fill(bucket, owner, 10..<35_000)
                var many = try await cost(redis) { try await bucket.put("one more", "", owner: owner) }
                // The log is full by now.
                #expect(many.commands.removeValue(forKey: "lpop") == 1)
                #expect(few.commands == many.commands && few.scripts == 1)

                // Changes while the pages are read: the snapshot is that of one version.
                let changing = Task {
                    var number = 0
                    while !Task.isCancelled {
                        try await bucket.put("k\(number % 35_000)", "changed", owner: owner)
                        try await bucket.remove("k\((number * 7 + 3) % 35_000)", owner: owner)
                        number += 1
                    }
                }
                let watcher = try await Watcher.start(try other.bucket("room"))
                try await watcher.until("changes follow the snapshot") { !$0.puts.isEmpty && !$0.leaves.isEmpty }
                changing.cancel()
                _ = await changing.result
                try await bucket.put("last", "", owner: owner)
                try await watcher.until("the last change arrives") { $0.objects["last"] != nil }
                let snapshot = try await bucket.snapshot()
                let state = watcher.state
                #expect(state.faults == [] && state.gaps == 0)
                #expect(snapshot.objects.count > 30_000)
                #expect(Dictionary(uniqueKeysWithValues: snapshot.objects.map { ($0.key, $0) }) == state.objects)

                let pages = try await cost(redis) { _ = try await bucket.snapshot() }
                #expect(pages.scripts == (snapshot.objects.count + 511) / 512 + 1)
            }
        }

        private func fill(_ bucket: PresenceBucket, _ owner: PresenceOwner, _ numbers: Range<Int>) async throws {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for lane in 0..<128 {
                    group.addTask {
                        for number in numbers where number % 128 == lane {
                            try await bucket.put("k\(number)", "a value of some length", owner: owner)
                        }
                    }
                }
                try await group.waitForAll()
            }
        }
    }
}
