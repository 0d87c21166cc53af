import Hiredis
import RedisDC
import TestSupport
import Testing

@testable import RedisDCTestSupport

extension EngineTests {
    @Suite("Nodes in other languages", .serialized)
    struct ForeignNodeTests {
        @Test("a node that has only the scripts signals, waits, is woken and confirms")
        func takesPart() async throws {
            try await withCoordinators { _, one, _, redis in
                let foreign = try await ForeignNode(redis)
                let semaphore = try one.semaphore("s", permits: 0)
                async let waiting: Void = semaphore.wait(timeout: .seconds(20))
                try await until("the waiter is queued") { try await one.inspect("s")?.waiterCount == 1 }
                try await foreign.signal("s")
                try await waiting

                try await redis.withSubscription(to: [foreign.channel]) { wakeUps in
                    let (status, claim) = try await foreign.acquire("s")
                    #expect(status == "0")
                    try await semaphore.signal()
                    guard case .message(let message)? = try await wakeUps.next() else {
                        Issue.record("no wake-up")
                        return
                    }
                    // The first notice of the session.
                    #expect(message.text == "1 \(claim) 1")
                    // The library confirms its own permit.
                    try await until("only the foreign claim is unconfirmed") {
                        try await Audit(redis).claims.count == 1
                    }
                    let unconfirmed = try await Audit(redis)
                    unconfirmed.check()
                    let id = await foreign.id(claim)
                    #expect(unconfirmed.claims.keys.first == id)
                    #expect(unconfirmed.resources["s"]?.consumed == 2)
                    // Any request in its slot confirms it.
                    _ = try await foreign.request("create", "another", ["sf", "0"], slotOf: claim)
                }
                let audit = try await Audit(redis)
                audit.check()
                #expect(audit.claims.isEmpty)
                #expect(audit.resources["s"]?.consumed == 2)
            }
        }

        @Test("a refused request confirms nothing, and a permit that is confirmed twice counts once")
        func confirmedTwice() async throws {
            try await withServer { _, redis, _ in
                let node = try await ForeignNode(redis)
                try await node.signal("s", 5)
                let (status, claim) = try await node.acquire("s")
                #expect(status == "1")
                let refused = try await node.request("acquire", "t", ["sf", "0", "c", 1, "1"], slotOf: claim)
                #expect(refused == ["-1"])
                let unconfirmed = try await Audit(redis)
                unconfirmed.check()
                let id = await node.id(claim)
                #expect(unconfirmed.claims[id]?.state == "g")
                for _ in 0..<2 { try await node.confirm(claim) }
                let audit = try await Audit(redis)
                audit.check()
                #expect(audit.claims.isEmpty)
                #expect(audit.resources["s"]?.consumed == 1)
                #expect(audit.resources["s"]?.free == 4)
            }
        }
    }
}
