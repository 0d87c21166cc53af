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
                try await until("it waits") { try await one.inspect("s")?.waiterCount == 1 }
                try await foreign.signal("s")
                try await waiting

                try await redis.withSubscription(to: [foreign.channel]) { wakeUps in
                    let (word, claim) = try await foreign.acquire("s")
                    #expect(word == "queued")
                    try await semaphore.signal()
                    guard case .message(let message)? = try await wakeUps.next() else {
                        Issue.record("no wake-up")
                        return
                    }
                    #expect(message.text.split(separator: " ").first == "\(claim)")
                    // The other node confirms by itself, with whatever request comes through first.
                    try await until("only this one is unconfirmed") { try await Audit(redis).claims.count == 1 }
                    let unconfirmed = try await Audit(redis)
                    unconfirmed.check()
                    #expect(unconfirmed.claims.keys.first == "\(foreign.session):\(claim)")
                    // The confirmation travels with any request.
                    _ = try await foreign.request("give", "s", confirming: claim)
                }
                try await until("all is confirmed") { try await Audit(redis).resources["s"]?.consumed == 2 }
                let audit = try await Audit(redis)
                audit.check()
                #expect(audit.claims.isEmpty)
            }
        }

        @Test("what a refused request confirms counts once, although it is confirmed again")
        func confirmedTwice() async throws {
            try await withServer { _, redis, _ in
                let node = try await ForeignNode(redis)
                try await node.signal("s", 5)
                let (_, consumed) = try await node.acquire("s")
                let lease = try await node.begun {
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
