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
                try await until("all is confirmed") { try await Audit(redis).things["s"]?.consumed == 2 }
                let audit = try await Audit(redis)
                audit.check()
                #expect(audit.claims.isEmpty)
            }
        }
    }
}
