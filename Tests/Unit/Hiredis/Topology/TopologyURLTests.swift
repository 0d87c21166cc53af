import Testing

@testable import Hiredis
@testable import HiredisTestSupport

@Suite("URLs with several addresses")
struct TopologyURLTests {
    @Test("a URL of sentinels determines their addresses, the name of the master and the database")
    func sentinels() throws {
        let configuration = try RedisConfiguration(url: "redis-sentinel://a:1,b,[::1]:3/orders/2")
        let addresses: [RedisConfiguration.Endpoint] = [
            .tcp(host: "a", port: 1), .tcp(host: "b", port: 26379), .tcp(host: "::1", port: 3),
        ]
        #expect(configuration.topology == .sentinel(name: "orders", addresses: addresses))
        #expect(configuration.database == 2)
        #expect(configuration.credentials == nil && configuration.sentinelCredentials == nil)
        #expect(configuration.tls == nil && configuration.sentinelTLS == nil)
        #expect(throws: Never.self) { try configuration.validate() }
    }

    @Test("the master and the sentinels have users and passwords of their own")
    func credentials() throws {
        let configuration = try RedisConfiguration(
            url: "redis-sentinel://al%3Aice:s%2Fx@a/main?sentinel-user=bob&sentinel-password=p%26q")
        #expect(configuration.credentials?.username == "al:ice" && configuration.credentials?.password == "s/x")
        #expect(configuration.sentinelCredentials?.username == "bob")
        #expect(configuration.sentinelCredentials?.password == "p&q")
        let other = try RedisConfiguration(url: "redis-sentinel://:na%C3%AFve@a/main?sentinel-password=p")
        #expect(other.credentials?.username == nil && other.credentials?.password == "naïve")
        #expect(other.sentinelCredentials?.username == nil && other.sentinelCredentials?.password == "p")
    }

    @Test("rediss-sentinel uses TLS for the master and for the sentinels")
    func tls() throws {
        let configuration = try RedisConfiguration(url: "REDISS-SENTINEL://a,b/main")
        #expect(configuration.tls == RedisTLS() && configuration.sentinelTLS == RedisTLS())
    }

    @Test("a URL of a cluster determines the seeds")
    func cluster() throws {
        let configuration = try RedisConfiguration(url: "redis-cluster://:secret@a:1,b/")
        #expect(configuration.topology == .cluster(seeds: [.tcp(host: "a", port: 1), .tcp(host: "b", port: 6379)]))
        #expect(configuration.credentials?.password == "secret" && configuration.tls == nil)
        #expect(try RedisConfiguration(url: "rediss-cluster://a").tls == RedisTLS())
        for url in ["redis-cluster://a/1", "redis-cluster://a?x=1", "redis-cluster://", "redis-cluster://a,"] {
            #expect(throws: RedisError.self) { try RedisConfiguration(url: url) }
        }
    }

    @Test(
        "an invalid URL is refused with .invalidArgument, and the error does not contain the password",
        arguments: [
            "redis-sentinel://", "redis-sentinel://a", "redis-sentinel://a/", "redis-sentinel:///main",
            "redis-sentinel://a,/main", "redis-sentinel://,a/main", "redis-sentinel://:hunter2@/main",
            "redis-sentinel://alice@a/main", "redis-sentinel://alice:@a/main",
            "redis-sentinel://a:0/main", "redis-sentinel://a:65536/main", "redis-sentinel://a:x/main",
            "redis-sentinel://a:/main", "redis-sentinel://[::1/main", "redis-sentinel://[::1]x/main",
            "redis-sentinel://:hunter2@a/main/x", "redis-sentinel://:hunter2@a/main/-1",
            "redis-sentinel://:hunter2@a/main/1/2", "redis-sentinel://a/main?sentinel-user=bob",
            "redis-sentinel://a/main?password=hunter2", "redis-sentinel://:hunter2%2@a/main",
            "redis-sentinel://:hunter2%zz@a/main", "redis-sentinel://:hunter2%ff@a/main",
            "redis-sentinel://:hunter2/x@a/main",
        ])
    func wrong(url: String) {
        do throws(RedisError) {
            let configuration = try RedisConfiguration(url: url)
            Issue.record("\(url) was accepted as \(configuration.topology)")
        } catch {
            #expect(error.code == .invalidArgument)
            #expect(error.message.contains("redis-sentinel://host[:port],…/name[/db]"))
            #expect(!"\(error)".contains("hunter2"))
        }
    }

    @Test("a configuration without sentinels, without a name or with a sentinel twice is refused")
    func validation() {
        let address = RedisConfiguration.Endpoint.tcp(host: "a", port: 1)
        for configuration in [
            RedisConfiguration(master: "main", sentinels: []), RedisConfiguration(master: "", sentinels: [address]),
            RedisConfiguration(master: "main", sentinels: [address, address]), RedisConfiguration(cluster: []),
            {
                var cluster = RedisConfiguration(cluster: [address])
                cluster.database = 1
                return cluster
            }(),
        ] { #expect(throws: RedisError.self) { try configuration.validate() } }
    }
}
