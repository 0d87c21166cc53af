import Hiredis
import RedisDC
import TestSupport
import Testing

extension EngineTests {
    @Suite("Nodes in other languages")
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
                    #expect(status == "queued")
                    try await semaphore.signal()
                    guard case .message(let message)? = try await wakeUps.next() else {
                        Issue.record("no wake-up")
                        return
                    }
                    #expect(message.text.split(separator: " ").first == "\(claim)")
                    // The library confirms its own permit with its next request.
                    try await until("only the foreign claim is unconfirmed") {
                        try await Audit(redis).claims.count == 1
                    }
                    let unconfirmed = try await Audit(redis)
                    unconfirmed.check()
                    #expect(unconfirmed.claims.keys.first == "\(foreign.session):\(claim)")
                    // Any request can carry the confirmation.
                    _ = try await foreign.request("give", "s", confirming: claim)
                }
                try await until("all permits are confirmed") { try await Audit(redis).resources["s"]?.consumed == 2 }
                let audit = try await Audit(redis)
                audit.check()
                #expect(audit.claims.isEmpty)
            }
        }

        @Test("a permit that a refused request confirms counts once, even if it is confirmed again")
        func confirmedTwice() async throws {
            try await withServer { _, redis, _ in
                let node = try await ForeignNode(redis)
                try await node.signal("s", 5)
                let (_, consumed) = try await node.acquire("s")
                let lease = try await node.number {
                    _ = try await node.request("acquire", "m", ["m", "1", "f", 1, "l", "0"])
                }
                await #expect(throws: RedisError.self) {
                    _ = try await node.request("release", "another", [.integer(lease), "", "0"], confirming: consumed)
                }
                _ = try await node.request("give", "m", confirming: consumed)
                let audit = try await Audit(redis)
                audit.check()
                #expect(audit.resources["s"]?.consumed == 1)
            }
        }
    }
}
