// The client with a real cluster. The tests run one after the other, because each starts several servers.
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import HiredisTestSupport

/// Runs a body with a cluster and a client of it.
func withClusterClient<Result>(
    _ configuration: LocalCluster.Configuration = .init(replicasPerMaster: 0, nodeTimeout: .seconds(20)),
    configure: (inout RedisConfiguration) -> Void = { _ in },
    _ body: (LocalCluster, RedisClient) async throws -> Result
) async throws -> Result {
    try await withLocalCluster(configuration) { cluster in
        var client = try RedisConfiguration(url: cluster.url)
        client.commandTimeout = patience
        configure(&client)
        return try await withRedisClient(client) { redis in try await body(cluster, redis) }
    }
}

/// Keys that are on different nodes of a cluster of three: in the slots 12182, 5061 and 6918.
let spreadKeys = ["foo", "bar", "test"]

extension ServerTests {
    @Suite("The client with a cluster", .serialized)
    struct ClusterTests {
        @Test("commands, pipelines, transactions and scripts go to the masters of their keys")
        func operations() async throws {
            try await withClusterClient(.init(server: .init(password: "se cret"), replicasPerMaster: 0)) {
                cluster, redis in
                for key in spreadKeys { _ = try await redis.send("SET", .string(key), .string("value of \(key)")) }
                for node in cluster.nodes { #expect(try await directly(node) { try await $0.integer("DBSIZE") } == 1) }
                let commands = (0..<300).map { RedisCommand("ECHO", .integer($0)) }
                #expect(try await redis.pipeline(commands).map(\.integer) == Array(0..<300))
                var sets: [RedisCommand] = []
                for index in 0..<300 {
                    sets.append(["SET", "key:\(index)", .integer(index)])
                    sets.append(index == 150 ? ["HGET", "foo", "field"] : ["GET", "key:\(index)"])
                }
                let replies = try await redis.pipeline(sets)
                for index in 0..<300 where index != 150 { #expect(replies[2 * index + 1].integer == index) }
                #expect(replies[301].errorMessage?.hasPrefix("WRONGTYPE") == true)

                let results = try await redis.transaction([["INCR", "{foo}:n"], ["PING"], ["INCR", "{foo}:n"]])
                #expect(results.map(\.integer) == [1, nil, 2])
                let error = await redisError {
                    _ = try await redis.transaction([["INCR", "foo:n"], ["INCR", "bar:n"]])
                }
                #expect(error?.code == .invalidArgument && error?.message.contains("hash tag") == true)

                let script = RedisScript("return redis.call('GET', KEYS[1])")
                for key in spreadKeys {
                    #expect(try await redis.script(script, keys: [key]).string == "value of \(key)")
                }
                #expect(try await redis.script(RedisScript("return 7"), keys: []).integer == 7)
            }
        }

        @Test("blocking commands and dedicated connections use the master of their key")
        func connections() async throws {
            try await withClusterClient { _, redis in
                for key in spreadKeys {
                    let blocked = Task { try await redis.block(.brpop(key), timeout: patience) { _ in } }
                    _ = try await redis.send("LPUSH", .string(key), "element")
                    #expect(try await blocked.value?.array?.last?.string == "element")
                    #expect(try await redis.block(.brpop(key), timeout: .milliseconds(20)) { _ in } == nil)
                    let cancelled = Task { try await redis.block(.brpop(key), timeout: nil) { _ in } }
                    cancelled.cancel()
                    #expect(await redisError { _ = try await cancelled.value }?.code == .cancelled)
                    let replies = try await redis.withDedicatedConnection { connection in
                        try await connection.pipeline([["SET", "{\(key)}", "x"], ["WAIT", 0, 0]])
                            + connection.pipeline([["GET", "{\(key)}"]])
                    }
                    #expect(replies.map(\.string) == ["OK", nil, "x"])
                }
            }
        }

        @Test("subscribers of a channel receive what is published on any server")
        func ordinaryChannels() async throws {
            try await withClusterClient { cluster, redis in
                try await redis.withSubscription(to: ["news", .pattern("match:*")]) { events in
                    for node in cluster.nodes { _ = try await directly(node) { try await $0.publish("x", to: "news") } }
                    _ = try await redis.publish("y", to: "match:7")
                    let texts = try await events.texts(4)
                    #expect(texts.sorted() == ["x", "x", "x", "y"])
                }
            }
        }

        @Test("a command for one server is refused, and can be sent to each master")
        func oneServer() async throws {
            try await withClusterClient { cluster, redis in
                let error = await redisError { _ = try await redis.send("DBSIZE") }
                #expect(error?.code == .invalidArgument)
                for key in spreadKeys { _ = try await redis.send("SET", .string(key), "value") }
                var ports: Set<String> = []
                for master in try await redis.masters() {
                    #expect(try await master.send(["DBSIZE"]).integer == 1)
                    ports.insert(master.endpoint.description)
                }
                #expect(ports == Set(cluster.nodes.map { "127.0.0.1:\($0.port)" }))
            }
        }

        @Test("seeds that are down are left out")
        func seedsDown() async throws {
            try await withLocalCluster(.init(replicasPerMaster: 0, nodeTimeout: .seconds(20))) { cluster in
                let seeds = [1, 2, 3, 4, 5, 6, 7, cluster.nodes[1].port].map { "127.0.0.1:\($0)" }.joined(
                    separator: ",")
                try await withTestClient(url: "redis-cluster://\(seeds)") { redis in
                    for key in spreadKeys { _ = try await redis.send("SET", .string(key), "x") }
                }
                var configuration = try RedisConfiguration(url: "redis-cluster://127.0.0.1:1")
                configuration.commandTimeout = .milliseconds(200)
                try await withRedisClient(configuration) { redis in
                    try await until("the error names the address") {
                        let error = await redisError { _ = try await redis.send("GET", "foo") }
                        #expect(error?.code == .timedOut && error?.mayHaveRun == false)
                        return error?.message.contains("127.0.0.1:1") == true
                    }
                }
            }
        }

        @Test("a blocked command without a timeout waits for a cluster that does not answer, and can be cancelled")
        func cancelledWait() async throws {
            try await withTestClient(url: "redis-cluster://127.0.0.1:1") { redis in
                let blocked = Task { try await redis.block(.brpop("foo"), timeout: nil) { _ in } }
                let command = Task { try await redis.send(["GET", "foo"], timeout: .seconds(1 << 60)) }
                try await Task.sleep(for: .milliseconds(100))
                blocked.cancel()
                command.cancel()
                #expect(await redisError { _ = try await blocked.value }?.code == .cancelled)
                #expect(await redisError { _ = try await command.value }?.code == .cancelled)
            }
        }

        @Test("all servers are used with TLS", .needsTLS)
        func tls() async throws {
            try await withTestCertificates { certificates in
                try await withLocalCluster(.init(server: .init(tls: certificates), replicasPerMaster: 0)) { cluster in
                    var configuration = try RedisConfiguration(
                        url: "rediss-cluster://localhost:\(#require(cluster.nodes[0].tlsPort))")
                    configuration.tls?.authority = .file(certificates.authority)
                    configuration.commandTimeout = patience
                    for node in cluster.nodes {
                        configuration.addressMap[.tcp(host: "127.0.0.1", port: node.port)] =
                            .tcp(host: "localhost", port: try #require(node.tlsPort))
                    }
                    try await withRedisClient(configuration) { redis in
                        for key in spreadKeys { _ = try await redis.send("SET", .string(key), "x") }
                        #expect(try await redis.masters().count == 3)
                    }
                }
            }
        }

        @Test("the addresses that servers name are translated")
        func addressMap() async throws { try await addressMap(.init(), host: "127.0.0.1") }

        @Test(
            "servers that want to be addressed by a name are addressed by it",
            .needs(setting: "cluster-preferred-endpoint-type"))
        func hostNames() async throws {
            let extra = ["cluster-announce-hostname localhost", "cluster-preferred-endpoint-type hostname"]
            try await addressMap(.init(extra: extra), host: "localhost")
        }

        /// Expects that a client addresses the servers by this host, and then connects to their proxies.
        private func addressMap(_ server: LocalRedis.Configuration, host: String) async throws {
            try await withLocalCluster(.init(server: server, replicasPerMaster: 0)) { cluster in
                // Servers learn the names of the others by gossip.
                try await until("the servers know the hosts of all") {
                    for node in cluster.nodes {
                        let slots = try await directly(node) { try await $0.send("CLUSTER", "SLOTS").array ?? [] }
                        let hosts = slots.map { $0.array?[2].array?[0].string }
                        guard hosts.allSatisfy({ $0 == host }) else { return false }
                    }
                    return true
                }
                var proxies: [FaultProxy] = []
                for node in cluster.nodes { proxies.append(try await FaultProxy.start(to: .port(node.port))) }
                var configuration = try RedisConfiguration(url: "redis-cluster://127.0.0.1:\(proxies[0].port)")
                for (node, proxy) in zip(cluster.nodes, proxies) {
                    configuration.addressMap[.tcp(host: host, port: node.port)] =
                        .tcp(host: "127.0.0.1", port: proxy.port)
                }
                try await withRedisClient(configuration) { redis in
                    try await cluster.move(slots: [12182], to: cluster.nodes[0])
                    for key in spreadKeys { #expect(try await redis.send("SET", .string(key), "x").string == "OK") }
                    #expect(proxies.allSatisfy { $0.counters.acceptedConnections > 0 })
                    for node in cluster.nodes {
                        let clients = try await directly(node) { try await $0.send("CLIENT", "LIST").string ?? "" }
                        // One connection of this test, and those that the proxy has made.
                        let count = clients.split(separator: "\n").count { $0.contains("name=redisdc") }
                        let proxy = proxies[cluster.nodes.firstIndex { $0 === node }!]
                        #expect(count == 1 + proxy.counters.openConnections)
                    }
                }
                for proxy in proxies { await proxy.stop() }
            }
        }
    }
}
