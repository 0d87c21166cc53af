import GameServices
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

extension SecurityTests {
    @Suite("Rights of presence", .serialized)
    struct PresenceRightsTests {
        @Test("presence can use every operation of Presence in its namespace, and has no unused right")
        func presence() async throws {
            let users = try DocumentedUsers()
            try await withSecuredServer { server, admin in
                let (name, password) = try await users.create("presence", on: admin)
                _ = try await admin.send("CONFIG", "RESETSTAT")
                try await withRedisClient(url: server.url(name, password)) { redis in
                    try await PresenceOperations(redis: redis, namespace: "default").run()
                    let refused = try await refusals(admin)
                    #expect(refused == [])
                    await #expect(throws: RedisError.self) { try await redis.send("GET", "elsewhere") }
                }
                let used = try await admin.send("INFO", "commandstats").string ?? ""
                let always = ["auth", "ping", "select", "info", "client|setname", "script|load", "evalsha", "eval"]
                for right in try users.permitted(to: "presence").subtracting(always) {
                    #expect(used.contains("cmdstat_\(right):"), "\(right) is unused")
                }
            }
        }
    }
}

/// Every public operation of presence, by one user of the server.
struct PresenceOperations {
    let redis: RedisClient
    let namespace: String

    func run() async throws {
        var configuration = PresenceConfiguration()
        (configuration.ttl, configuration.heartbeatInterval) = (.seconds(30), .milliseconds(300))
        configuration.maxLoggedChanges = 2
        try await withPresence(redis: redis, namespace: namespace, configuration: configuration) { presence in
            let bucket = try presence.bucket("room")
            let (beginnings, beginning) = AsyncStream.makeStream(of: Void.self)
            // The keys of what has left; nil if so much has changed meanwhile that the log does not have all of it.
            let watching = Task { () -> [String]? in
                defer { beginning.finish() }
                var keys: [String] = []
                for try await event in bucket.changes() {
                    beginning.yield()
                    if case .gap = event { return nil }
                    guard case .change(let change) = event, case .left(let leave) = change.kind else { continue }
                    keys.append(leave.key)
                    if keys.count == 3 { break }
                }
                return keys.sorted()
            }
            for await _ in beginnings { break }
            let phone = try await bucket.connect(user: "alice", client: "phone")
            let pad = try await bucket.connect(user: "alice", client: "pad")
            try await bucket.put("a", "1", owner: phone)
            try await bucket.put("b", "1", owner: phone, scope: .user, grace: .milliseconds(10))
            try await bucket.put("c", "1", owner: pad, scope: .user)
            try await bucket.put("c", "1", owner: pad)
            try await bucket.update("a", [])
            #expect(try await bucket.snapshot().objects.count == 3)
            try await bucket.remove("c", owner: pad)
            try await bucket.disconnect(pad)
            try await bucket.disconnect(phone)
            let left = try await watching.value
            #expect(left == nil || left == ["a", "b", "c"])
            #expect(try await bucket.snapshot().objects == [])
            let position = try await bucket.snapshot().position
            let again = try await bucket.connect(user: "alice", client: "phone")
            try await bucket.put("d", "1", owner: again)
            for try await event in bucket.changes(after: position) {
                guard case .change(let change) = event else { continue }
                #expect(change.version == position.version + 1)
                break
            }
        }
    }
}
