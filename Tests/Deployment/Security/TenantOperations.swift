// All that a tenant does on a server that it shares with others.
import GameServices
import Hiredis
import QueueListen
import RedisDC
import TestSupport
import Testing

/// Runs every public operation of RedisDC, QueueListen and GameServices in the namespace of a tenant.
struct TenantOperations {
    let url: String
    let redis: RedisClient
    let tenant: String
    let admin: RedisClient

    func run() async throws {
        try await CoordinatorOperations(url: url, namespace: tenant, admin: admin).run()
        try await ClassicOperations(redis: redis, namespace: tenant).run()
        try await PubSubOperations(redis: redis, prefix: "rdc:{\(tenant):").run()
        try await MailOperations(redis: redis, namespace: tenant, admin: admin).run()
        // The tenant's own mailboxes receive the outcomes of matches.
        try await GameOperations(redis: redis, namespace: tenant, admin: redis).run()
        try await PresenceOperations(redis: redis, namespace: tenant).run()
    }

    /// Runs `body` while the tenant has keys of all kinds and listens on channels of all kinds.
    func whileInUse(_ body: () async throws -> Void) async throws {
        try await withCoordinator(redis: redis, namespace: tenant) { coordinator in
            try await withPostOffice(
                redis: redis, namespace: tenant, configuration: MailOperations.configuration()
            ) { office in
                let classic = try ClassicSemaphore("seats", redis: redis, namespace: tenant)
                try await classic.create(permits: 3)
                _ = try await coordinator.rateLimiter("calls", rate: 1, per: .seconds(3600), burst: 10).tryAcquire()
                var leaders = try coordinator.election("leader").changes().makeAsyncIterator()
                _ = await leaders.next()
                try await office.send("secret", to: "inbox", id: "a send")
                try await office.send("secret", to: "alice", "bob", "carol", id: "a send across partitions")
                let mailbox = try office.mailbox("empty")
                let listening = Task { try await mailbox.listen() }
                try await until("the listener is registered") {
                    try await mailbox.inspect()?.listeningProcesses == 1
                }
                try await Leaderboard("used", redis: redis, namespace: tenant).submit(1, for: "alice", id: "a submit")
                _ = try await Matchmaker("used", redis: redis, office: office, namespace: tenant).enqueue(
                    "alice", rating: 0)
                // The index contains a waiter and the holder that it waits for.
                try await coordinator.readWriteLock("lock").withWriteLock { lease in
                    let waiting = Task { try await coordinator.readWriteLock("lock").withReadLock { _ in } }
                    try await until("the reader is queued") { try await coordinator.inspect("lock")?.waiterCount == 1 }
                    try await withPresence(redis: redis, namespace: tenant) { presence in
                        let bucket = try presence.bucket("room")
                        let phone = try await bucket.connect(user: "alice", client: "phone")
                        try await bucket.put("a", "secret", owner: phone)
                        var changes = bucket.changes().makeAsyncIterator()
                        _ = try await changes.next()
                        try await body()
                        #expect(try await bucket.snapshot().objects.map(\.text) == ["secret"])
                        _ = changes
                    }
                    #expect(lease.isHeld)
                    #expect(try await coordinator.inspect("lock")?.waiterCount == 1)
                    waiting.cancel()
                    _ = await waiting.result
                }
                #expect(try await classic.value == 3)
                #expect(try await office.mailbox("inbox").peek().map(\.text) == ["secret"])
                listening.cancel()
                _ = await listening.result
                _ = leaders
            }
        }
    }
}
