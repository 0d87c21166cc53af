import Hiredis
import Testing

@testable import RedisDCTesting
@testable import RedisDCTestingTestSupport

@Suite("LocalSentinel: a master, replicas and sentinels")
struct LocalSentinelTests {
    @Test("the sentinels name one master, which the replicas follow, when start returns")
    func start() async throws {
        try await withLocalSentinel(.init(downAfter: .seconds(60))) { sentinel in
            #expect(sentinel.servers.count == 3 && sentinel.sentinels.count == 3)
            let master = try await sentinel.master()
            #expect(master === sentinel.servers[0])
            try await #expect(ports(sentinel.replicas()) == sentinel.servers.dropFirst().map(\.port))
            _ = try await master.send("SET", "key", "value")
            try await #expect(master.send("WAIT", 2, 5000).integer == 2)
            let ports = sentinel.sentinels.map { "127.0.0.1:\($0.port)" }.joined(separator: ",")
            #expect(sentinel.url == "redis-sentinel://\(ports)/main")
        }
    }

    @Test("a replica is promoted when the master is killed, and the master follows it when it is back")
    func kill() async throws {
        try await withLocalSentinel { sentinel in
            let old = try await sentinel.master()
            await old.kill()
            let new = try await sentinel.waitForMaster(otherThan: old)
            _ = try await new.send("SET", "key", "value")
            try await old.restart()
            // On a busy machine, the sentinels may have elected the old one again.
            try await sentinel.waitUntilHealthy()
            try await #expect(old.send("GET", "key").string == "value")
        }
    }

    @Test("failover promotes a replica while the master runs")
    func failover() async throws {
        // The sentinels must not consider a server on a busy machine as down, which would be another failover.
        try await withLocalSentinel(.init(replicas: 1, downAfter: .seconds(60))) { sentinel in
            let new = try await sentinel.failover()
            #expect(new === sentinel.servers[1])
            try await sentinel.waitUntilHealthy()
            try await #expect(ports(sentinel.replicas()) == [sentinel.servers[0].port])
        }
    }

    @Test("servers too old for enable-debug-command start without it")
    func oldServers() async throws {
        let folder = try TemporaryFolder(prefix: "old-server")
        defer { folder.remove() }
        let old = try await makeProgram(
            """
            if grep enable-debug-command "$1"; then echo "Bad directive"; exit 1; fi
            exec \(try #require(ServerProgram.find())) "$@"
            """, in: folder)
        // A sentinel must not take a server that a busy machine stops for one that is down.
        let configuration = LocalSentinel.Configuration(
            server: .init(binary: old), replicas: 1, sentinels: 1, downAfter: .seconds(60))
        try await withLocalSentinel(configuration) { sentinel in
            try await #expect(sentinel.master() === sentinel.servers[0])
        }
    }

    @Test("a server that was promoted is still the master after a restart")
    func restart() async throws {
        // The sentinels must not consider the server as down while it restarts.
        try await withLocalSentinel(.init(replicas: 1, downAfter: .seconds(60))) { sentinel in
            let new = try await sentinel.failover()
            try await sentinel.waitUntilHealthy()
            try await new.restart()
            try await #expect(new.send("ROLE").array?.first?.string == "master")
            try await sentinel.waitUntilHealthy()
            try await #expect(sentinel.master().port == new.port)
        }
    }

    @Test("servers and sentinels with passwords find each other")
    func passwords() async throws {
        let configuration = LocalSentinel.Configuration(
            server: .init(password: "se cret/1"), replicas: 1, name: "orders", sentinelPassword: "other#",
            downAfter: .seconds(60))
        try await withLocalSentinel(configuration) { sentinel in
            _ = try await sentinel.failover()
            try await sentinel.waitUntilHealthy()
            #expect(sentinel.url.hasPrefix("redis-sentinel://:se%20cret%2F1@127.0.0.1:"))
            #expect(sentinel.url.hasSuffix("/orders?sentinel-password=other%23"))
        }
    }

    @Test("no majority of the sentinels names a master when most of them are killed")
    func noMajority() async throws {
        try await withLocalSentinel(.init(replicas: 1)) { sentinel in
            for one in sentinel.sentinels.prefix(2) { await one.kill() }
            await #expect {
                try await sentinel.master()
            } throws: {
                ($0 as? LocalRedisError)?.code == .notHealthy
            }
        }
    }

    @Test("all processes have ended when stop returns")
    func stop() async throws {
        let sentinel = try await LocalSentinel.start(.init(replicas: 1))
        let processes = (sentinel.servers + sentinel.sentinels).compactMap(\.processID)
        #expect(processes.count == 5)
        await sentinel.stop()
        #expect(processes.allSatisfy { !processExists($0) })
    }
}
