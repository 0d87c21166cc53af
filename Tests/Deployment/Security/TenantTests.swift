import Hiredis
import RedisDCTesting
import TestSupport
import Testing

extension SecurityTests {
    @Suite("Two tenants on one server", .serialized)
    struct TenantTests {
        @Test("each tenant can use every operation, while the other one holds and waits")
        func operations() async throws {
            try await withTenants { tenants, admin in
                for (tenant, other) in [(tenants[0], tenants[1]), (tenants[1], tenants[0])] {
                    try await other.whileInUse { try await tenant.run() }
                }
                let refused = try await refusals(admin)
                #expect(refused == [])
            }
        }

        @Test(
            "a tenant can neither read nor write a key of the other one, nor publish or subscribe on its channels",
            arguments: [[], ["+@read", "+@write", "+@pubsub"]])
        func isolation(furtherRights: [String]) async throws {
            try await withTenants { tenants, admin in
                for (tenant, intruder) in [(tenants[0], tenants[1]), (tenants[1], tenants[0])] {
                    let grant = ["ACL", "SETUSER", intruder.tenant] + furtherRights
                    _ = try await admin.send(RedisCommand(grant.map { .string($0) }))
                    let intrusion = Intrusion(redis: intruder.redis, ownKey: "rdc:{\(intruder.tenant):own}")
                    try await tenant.whileInUse {
                        for key in try await keys(of: tenant.tenant, admin) { try await intrusion.tryKey(key) }
                        for channel in try await channels(of: tenant.tenant, admin) {
                            try await intrusion.tryChannel(channel)
                        }
                    }
                }
            }
        }

        @Test("every command on keys that a tenant may run is tried on the keys of the other one")
        func completeness() async throws {
            // The server counts sharded channels as keys. SUNSUBSCRIBE affects only its own connection.
            let onChannels: Set = ["spublish", "ssubscribe", "sunsubscribe"]
            let tried = onChannels.union(Intrusion.commands.map { $0[0].lowercased() })
            try await withSecuredServer { _, admin in
                for command in try DocumentedUsers().permitted(to: "alice") where !command.contains("|") {
                    // An older server does not know all of them.
                    let about = try await admin.send("COMMAND", "INFO", .string(command)).array?.first?.array
                    guard let firstKey = about?[3].integer else { continue }
                    #expect(firstKey == 0 || tried.contains(command), "\(command)")
                }
            }
        }

        private func withTenants(
            _ body: (_ tenants: [TenantOperations], _ admin: RedisClient) async throws -> Void
        ) async throws {
            try await withSecuredServer { server, admin in
                let users = try DocumentedUsers()
                // The second name begins with the first one: a pattern that ended with the name would match both.
                let first = try await users.create("alice", named: "alice", on: admin)
                let second = try await users.create("alice", named: "alice-b", on: admin)
                let urls = [first, second].map { server.url($0.name, $0.password) }
                try await withRedisClient(url: urls[0]) { one in
                    try await withRedisClient(url: urls[1]) { two in
                        let tenants = [
                            TenantOperations(url: urls[0], redis: one, tenant: first.name, admin: admin),
                            TenantOperations(url: urls[1], redis: two, tenant: second.name, admin: admin),
                        ]
                        try await body(tenants, admin)
                    }
                }
            }
        }

        /// The tenant's keys, of which there must be some of every kind.
        private func keys(of tenant: String, _ admin: RedisClient) async throws -> [String] {
            let all = try await admin.send("KEYS", "*").array?.compactMap(\.string) ?? []
            let keys = all.filter { $0.contains("{\(tenant):") }
            for kind in [
                ":book", ":index", ":sessions", ":values", ":rate:calls", ":sem:seats}", ":sem:seats}:meta", ":meta",
                ":box:inbox", ":mail:inbox", ":sent:id:a send", ":split:a send across partitions",
                ":presence:state", ":presence:log", ":board:meta", ":match:state", ":match:index",
            ] {
                #expect(keys.contains { $0.hasSuffix(kind) }, "\(kind)")
            }
            return keys
        }

        /// The tenant's channels, of which there must be some of every kind.
        private func channels(of tenant: String, _ admin: RedisClient) async throws -> [String] {
            let all = try await admin.send("PUBSUB", "CHANNELS").array?.compactMap(\.string) ?? []
            let channels = all.filter { $0.contains("{\(tenant):") }
            #expect(channels.contains { $0.hasPrefix("rdc:") && $0.contains(":wake:") })
            #expect(channels.contains { $0.hasSuffix(":leader:leader") })
            #expect(channels.contains { $0.hasPrefix("ql:") && $0.contains(":wake:") })
            #expect(channels.contains { $0.hasSuffix(":wake:all") })
            #expect(channels.contains { $0.hasPrefix("gs:") && $0.contains(":presence:changes") })
            return channels
        }
    }
}

/// The attempts of a tenant to use keys and channels of another one.
private struct Intrusion {
    let redis: RedisClient
    let ownKey: String

    /// Commands on the key `KEY`; `OWN` is a key of the tenant that runs them.
    static let commands: [[String]] =
        [
            "GET KEY", "STRLEN KEY", "DUMP KEY", "TYPE KEY", "EXISTS KEY", "PTTL KEY", "HGET KEY f", "HMGET KEY f",
            "HGETALL KEY", "HEXISTS KEY f", "HLEN KEY", "HSTRLEN KEY f", "HSCAN KEY 0", "LLEN KEY", "LRANGE KEY 0 -1",
            "LINDEX KEY 0",
            "ZRANGE KEY 0 -1", "ZSCORE KEY m", "ZRANK KEY m", "ZCARD KEY", "ZCOUNT KEY -inf +inf", "ZLEXCOUNT KEY - +",
            "ZRANGEBYSCORE KEY -inf +inf",
            "ZREMRANGEBYRANK KEY 0 -1",
            "ZRANGEBYLEX KEY - +", "SET KEY v", "DEL KEY", "UNLINK KEY", "HSET KEY f v", "HDEL KEY f", "LPUSH KEY v",
            "RPUSH KEY v", "LPOP KEY", "RPOP KEY", "BRPOP KEY 0.001", "LSET KEY 0 v", "LTRIM KEY 0 0", "ZADD KEY 1 m",
            "ZREM KEY m", "PEXPIRE KEY 1", "PEXPIREAT KEY 1", "PERSIST KEY", "RENAME KEY OWN", "RENAME OWN KEY",
            "COPY KEY OWN", "RPOPLPUSH KEY OWN",
        ].map { $0.split(separator: " ").map(String.init) } + [
            ["EVAL", "return redis.call('TYPE', KEYS[1])", "1", "KEY"],
            ["EVAL", "return redis.call('DEL', ARGV[1])", "0", "KEY"],
            ["EVALSHA", "0000000000000000000000000000000000000000", "1", "KEY"],
        ]

    func tryKey(_ key: String) async throws {
        for command in Self.commands {
            let words = command.map { $0 == "KEY" ? key : $0 == "OWN" ? ownKey : $0 }
            await expectRefusal("\(words)") { _ = try await redis.send(RedisCommand(words.map { .string($0) })) }
        }
    }

    func tryChannel(_ channel: String) async throws {
        await expectRefusal("PUBLISH \(channel)") { _ = try await redis.publish("x", to: .channel(channel)) }
        await expectRefusal("PUBLISH \(channel), by a script") {
            _ = try await redis.send("EVAL", "return redis.call('PUBLISH', ARGV[1], 'x')", 0, .string(channel))
        }
        let pattern = String(channel.prefix { $0 != "}" }) + "*"
        for topic in [SubscriptionTopic.channel(channel), .pattern(channel), .pattern(pattern), .pattern("*")] {
            await expectRefusal("\(topic)") { try await redis.withSubscription(to: [topic]) { _ in } }
        }
        if let version = redis.serverVersion, version >= ServerVersion(7, 0) {
            await expectRefusal("SPUBLISH \(channel)") { _ = try await redis.publish("x", to: .shard(channel)) }
            await expectRefusal("SSUBSCRIBE \(channel)") {
                try await redis.withSubscription(to: [.shard(channel)]) { _ in }
            }
        }
    }

    private func expectRefusal(_ attempt: String, _ body: () async throws -> Void) async {
        do {
            try await body()
            Issue.record("not refused: \(attempt)")
        } catch {
            #expect((error as? RedisError)?.code == .notPermitted, "\(attempt): \(error)")
        }
    }
}
