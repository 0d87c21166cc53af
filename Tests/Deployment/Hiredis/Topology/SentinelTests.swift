// The client with real sentinels. The tests run one after the other, because each starts six servers.
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import HiredisTestSupport

/// Runs a body with a Sentinel deployment and a client of its master.
func withSentinelClient<Result>(
    _ configuration: LocalSentinel.Configuration = .init(replicas: 1),
    configure: (inout RedisConfiguration) -> Void = { _ in },
    _ body: (LocalSentinel, RedisClient) async throws -> Result
) async throws -> Result {
    try await withLocalSentinel(configuration) { sentinel in
        var client = try RedisConfiguration(url: sentinel.url)
        client.commandTimeout = patience
        configure(&client)
        return try await withRedisClient(client) { redis in try await body(sentinel, redis) }
    }
}

/// Runs a body with a client of one server, past the sentinels.
func directly<Result>(_ server: LocalRedis, _ body: (RedisClient) async throws -> Result) async throws -> Result {
    try await withTestClient(url: server.url, body)
}

extension ServerTests {
    @Suite("The client with sentinels", .serialized)
    struct SentinelTests {
        @Test("commands, scripts, transactions, blocking commands and subscriptions go to the master")
        func operations() async throws {
            // A master that is only slow, on a busy machine, must stay the master.
            let passwords = LocalSentinel.Configuration(
                server: .init(password: "se cret"), replicas: 1, name: "orders", sentinelPassword: "other",
                downAfter: .seconds(60))
            try await withSentinelClient(passwords) { sentinel, redis in
                _ = try await redis.send("SET", "key", "value")
                let script = RedisScript("return redis.call('GET', KEYS[1])")
                #expect(try await redis.script(script, keys: ["key"]).string == "value")
                #expect(try await redis.transaction([["INCR", "n"], ["INCR", "n"]]).last?.integer == 2)
                try await redis.withSubscription(to: ["news"]) { events in
                    let subscribers = try await redis.publish("hello", to: "news")
                    #expect(subscribers == 1)
                    #expect(try await events.message().text == "hello")
                }
                _ = try await redis.send("LPUSH", "list", "element")
                let popped = try await redis.block(.brpop("list"), timeout: patience) { _ in }
                #expect(popped?.array?.last?.string == "element")
                let role = try await redis.withDedicatedConnection { try await $0.pipeline([["ROLE"]]) }
                #expect(role[0].array?[0].string == "master")
                #expect(try await redis.info("tcp_port") == "\(sentinel.servers[0].port)")
            }
        }

        @Test(
            "sentinels and the master are used with TLS, and their addresses are translated",
            .needsTLS)
        func tls() async throws {
            try await withTestCertificates { certificates in
                try await withLocalSentinel(
                    .init(server: .init(tls: certificates), replicas: 1, downAfter: .seconds(60))
                ) { sentinel in
                    let addresses = try sentinel.sentinels.map { "localhost:\(try #require($0.tlsPort))" }
                    var configuration = try RedisConfiguration(
                        url: "rediss-sentinel://\(addresses.joined(separator: ","))/main")
                    configuration.tls?.authority = .file(certificates.authority)
                    configuration.sentinelTLS?.authority = .file(certificates.authority)
                    configuration.commandTimeout = patience
                    for server in sentinel.servers {
                        configuration.addressMap[.tcp(host: "127.0.0.1", port: server.port)] =
                            .tcp(host: "localhost", port: try #require(server.tlsPort))
                    }
                    try await withRedisClient(configuration) { redis in
                        _ = try await redis.send("SET", "key", "value")
                        let new = try await sentinel.failover()
                        try await until("the client has moved") { try await redis.info("tcp_port") == "\(new.port)" }
                    }
                }
            }
        }

        @Test("after kill -9 of the master the client continues with the new one, and no command runs twice")
        func kill() async throws {
            try await withSentinelClient { sentinel, redis in
                let writer = try await ListWriter.start(redis)
                let old = try await sentinel.master()
                // A kill alone may come while no command is in flight.
                try await old.pause()
                try await until("a command has no reply") { writer.unknown.count > 0 }
                await old.kill()
                let new = try await sentinel.waitForMaster(otherThan: old)
                let before = try await writer.progress()
                await writer.stop()
                let list = try await directly(new) { try await $0.send("LRANGE", "list", 0, -1) }
                let written = list.array?.compactMap(\.integer) ?? []
                #expect(Set(written).count == written.count)
                #expect(Set(written).isDisjoint(with: writer.notRun.all))
                #expect(writer.unknown.count > 0)
                #expect(Set(written).isSuperset(of: writer.acknowledged.all[before...]))
            }
        }

        @Test("a master that was away is not written to when it returns, although it accepts writes")
        func oldMasterReturns() async throws {
            try await withSentinelClient { sentinel, redis in
                let writer = try await ListWriter.start(redis)
                let old = try await sentinel.master()
                try await old.pause()
                let new = try await sentinel.waitForMaster(otherThan: old)
                let lastBefore = writer.started
                try await until("the client writes to the new master") {
                    try await directly(new) { try await $0.integer("LINDEX", "list", -1) } > lastBefore
                }
                let firstOfNew = writer.started
                try await old.resume()
                try await directly(old) { direct in
                    try await writer.progress(200)
                    // In one transaction, so that the list is that of a server that believes to be a master.
                    let state = try await direct.transaction([
                        ["ROLE"], ["LRANGE", "list", 0, -1], ["SET", "proof", "it accepts writes"],
                    ])
                    #expect(state[0].array?[0].string == "master" && state[2].string == "OK")
                    let written = state[1].array?.compactMap(\.integer) ?? []
                    #expect(!written.isEmpty)
                    #expect(written.allSatisfy { $0 <= firstOfNew })
                }
                // The sentinels also end the connections of its clients, this one among them.
                try await until("the old master is demoted") {
                    let role = try? await directly(old) { try await $0.send("ROLE") }
                    return role?.array?[0].string == "slave"
                }
                try await writer.progress()
                await writer.stop()
            }
        }

        @Test("sentinels that are lost end no connection; a new one needs a majority of them")
        func lostSentinels() async throws {
            // No sentinel may take a master that a busy machine stops for one that is down.
            try await withSentinelClient(.init(replicas: 1, downAfter: .seconds(60))) { sentinel, redis in
                _ = try await redis.send("SET", "key", "value")
                await sentinel.sentinels[0].kill()
                try await killConnections(of: sentinel.servers[0])
                #expect(try await getKey(redis).string == "value")
                try await sentinel.sentinels[1].pause()
                await sentinel.sentinels[2].kill()
                // From here on no sentinel connects again.
                let connections = try await redis.info("total_connections_received")
                for _ in 1...100 { _ = try await redis.send("GET", "key") }
                #expect(try await redis.info("total_connections_received") == connections)

                try await killConnections(of: sentinel.servers[0])
                let error = await redisError { _ = try await getKey(redis, timeout: .seconds(3)) }
                #expect(error?.code == .timedOut && error?.mayHaveRun == false)
                #expect(error?.message.contains("of 3 sentinels know the master") == true)

                try await sentinel.sentinels[1].resume()
                try await sentinel.sentinels[2].restart()
                #expect(try await redis.send("GET", "key").string == "value")
            }
        }

        @Test("a switch ends blocked commands and dedicated connections, and announces a gap to subscribers")
        func everyConnectionMoves() async throws {
            try await withSentinelClient { sentinel, redis in
                try await redis.withSubscription(to: ["news"]) { events in
                    let blocked = Task { try await redis.block(.brpop("list"), timeout: nil) { _ in } }
                    let dedicated = Task {
                        try await redis.withDedicatedConnection(timeout: patience) { connection in
                            while true {
                                _ = try await connection.pipeline([["PING"]])
                                try await Task.sleep(for: .milliseconds(5))
                            }
                        }
                    }
                    try await until("a command is blocked") { try await redis.blockedClients() == 1 }
                    try await sentinel.servers[0].pause()
                    let new = try await sentinel.waitForMaster(otherThan: sentinel.servers[0])
                    for task in [Task { _ = try await blocked.value }, Task { try await dedicated.value }] {
                        let error = await redisError { try await task.value }
                        #expect(error?.code == .connectionLost && error?.mayHaveRun == true)
                    }
                    let event = try await events.next()
                    guard case .gap? = event else {
                        Issue.record("\(String(describing: event)) instead of a gap")
                        return
                    }
                    #expect(try await redis.info("tcp_port") == "\(new.port)")
                    #expect(try await redis.publish("hello", to: "news") == 1)
                    #expect(try await events.message().text == "hello")
                    let waiting = Task { try await redis.block(.brpop("list"), timeout: patience) { _ in } }
                    _ = try await redis.send("LPUSH", "list", "element")
                    #expect(try await waiting.value?.array?.last?.string == "element")
                }
            }
        }

        @Test("a failover while the master runs loses no command that was certainly not sent")
        func plannedFailover() async throws {
            try await withSentinelClient(.init(downAfter: .seconds(60))) { sentinel, redis in
                let writer = try await ListWriter.start(redis)
                let new = try await sentinel.failover()
                try await sentinel.waitUntilHealthy()
                try await writer.progress()
                #expect(try await redis.info("tcp_port") == "\(new.port)")
                await writer.stop()
                let written = try await redis.send("LRANGE", "list", 0, -1).array?.compactMap(\.integer) ?? []
                #expect(Set(written).count == written.count)
                #expect(Set(written).isDisjoint(with: writer.notRun.all))
            }
        }

        /// Reads the key after the connections were killed. The end of a connection may arrive after a command was sent.
        private func getKey(_ redis: RedisClient, timeout: Duration? = nil) async throws(RedisError) -> RESPValue {
            do throws(RedisError) { return try await redis.send(["GET", "key"], timeout: timeout) } catch {
                guard error.code == .connectionLost else { throw error }
                return try await redis.send(["GET", "key"], timeout: timeout)
            }
        }

        /// Kills the connections of all clients except replicas and sentinels' subscriptions.
        private func killConnections(of server: LocalRedis) async throws {
            try await directly(server) { _ = try await $0.send("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes") }
        }
    }
}
