// The checks of `redisdc doctor`, each on a real server where it fails and where it passes.
import Foundation
import Hiredis
import RedisDC
import RedisDCTesting
import TestSupport
import Testing

@Suite("redisdc doctor", .serialized, .timeLimit(.minutes(10)))
struct DoctorTests {
    private struct Finding: Decodable {
        var level: String
        var check: String
        var result: String
        var advice: String?
    }

    /// The findings of `redisdc doctor --json`.
    private struct Report {
        let findings: [Finding]
        let status: Int32

        init(_ url: String, _ arguments: String...) async throws {
            let end = try await Child("redisdc", ["doctor", "--json"] + arguments, environment: ["REDIS_URL": url])
                .end()
            findings = try end.output.split(separator: "\n").map {
                try JSONDecoder().decode(Finding.self, from: Data($0.utf8))
            }
            status = end.status
        }

        /// The level of a check and its text; `nil` if it was not made.
        subscript(check: String) -> String? {
            findings.first { $0.check == check }.map { "\($0.level): \($0.result)" }
        }

        func has(_ level: String, _ check: String, _ text: String) -> Bool {
            findings.contains { finding in
                finding.level == level && finding.check == check && finding.result.contains(text)
                    && (finding.advice != nil || level == "ok")
            }
        }
    }

    @Test("in a cluster it checks each master, and the rights")
    func cluster() async throws {
        try await withLocalCluster(.init(replicasPerMaster: 0, nodeTimeout: .seconds(20))) { cluster in
            let report = try await Report(cluster.url)
            #expect(report.status == 0, "\(report)")
            #expect(report.findings.count { $0.check == "persistence" } == 3, "\(report)")
            for node in cluster.nodes { #expect(report.has("note", "persistence", "127.0.0.1:\(node.port): ")) }
            #expect(report.findings.filter { $0.check == "rights" }.map(\.level) == ["ok"], "\(report)")
        }
    }

    @Test("it names the key and the field of each damaged record")
    func damage() async throws {
        try await withLocalRedis { server in
            try await withRedisClient(url: server.url) { redis in
                #expect(try await Report(server.url)["records"] == nil)
                try await withCoordinator(redis: redis) {
                    _ = try await $0.semaphore("whole", permits: 1).create()
                    _ = try await $0.semaphore("spoiled", permits: 1).create()
                }
                #expect(try await Report(server.url).has("ok", "records", "namespace default"))
                _ = try await redis.send("HSET", "rdc:{default:0}:book", "t:spoiled", "rubbish")
                let report = try await Report(server.url)
                #expect(
                    report.has(
                        "bad", "records",
                        "the record of \"spoiled\" is damaged, so operations on it fail: "
                            + "field t:spoiled of rdc:{default:0}:book"), "\(report)")
                #expect(report.findings.count { $0.check == "records" } == 1)
            }
        }
    }

    @Test("it says what a failure loses without an append-only file, and with each policy of fsync")
    func persistence() async throws {
        try await withLocalRedis { server in
            let report = try await Report(server.url)
            #expect(report.has("note", "persistence", "no append-only file"), "\(report)")
            #expect(report["fsync"] == nil)
        }
        try await withLocalRedis(.init(persistence: .appendOnly(fsync: .always))) { server in
            let always = try await Report(server.url)
            #expect(always.has("ok", "persistence", "append-only file"), "\(always)")
            #expect(always.has("ok", "fsync", "always"), "\(always)")
            try await set(["appendfsync": "everysec"], on: server)
            let everySecond = try await Report(server.url)
            #expect(everySecond.has("note", "fsync", "the last two seconds"), "\(everySecond)")
            try await set(["appendfsync": "no"], on: server)
            let never = try await Report(server.url)
            #expect(never.has("note", "fsync", "appendfsync no"), "\(never)")
        }
    }

    @Test("it warns of eviction, unless the memory has no limit")
    func eviction() async throws {
        try await withLocalRedis { server in
            let none = try await Report(server.url)
            #expect(none.has("ok", "memory", "noeviction"), "\(none)")
            try await set(["maxmemory-policy": "allkeys-lru"], on: server)
            let unlimited = try await Report(server.url)
            #expect(unlimited.has("ok", "memory", "allkeys-lru"), "\(unlimited)")
            try await set(["maxmemory": "100mb"], on: server)
            let limited = try await Report(server.url)
            #expect(limited.has("note", "memory", "may evict"), "\(limited)")
        }
    }

    @Test("it says that min-replicas-to-write does not apply to scripts", .scriptsNeedReplicas(false))
    func minReplicasWithoutScripts() async throws {
        try await withReplicatedServers { servers in
            try await set(["min-replicas-to-write": "1"], on: servers.server)
            let report = try await Report(servers.server.url)
            #expect(report.has("note", "min-replicas", "does not apply to scripts"), "\(report)")
        }
    }

    @Test(
        "with a replica, it checks min-replicas-to-write, and min-replicas-max-lag against the TTL",
        .scriptsNeedReplicas())
    func minReplicas() async throws {
        try await withLocalRedis { server in
            let alone = try await Report(server.url)
            #expect(alone.has("ok", "replicas", "none"), "\(alone)")
            #expect(alone["min-replicas"] == nil && alone["max-lag"] == nil)
        }
        try await withReplicatedServers { servers in
            let url = servers.server.url
            let unlimited = try await Report(url)
            #expect(unlimited.has("ok", "replicas", "online"), "\(unlimited)")
            #expect(unlimited.has("note", "min-replicas", "min-replicas-to-write 0"), "\(unlimited)")
            #expect(unlimited["max-lag"] == nil)
            try await set(["min-replicas-to-write": "1", "min-replicas-max-lag": "10"], on: servers.server)
            let good = try await Report(url)
            #expect(good.has("ok", "min-replicas", "1 replicas"), "\(good)")
            #expect(good.has("ok", "max-lag", "10 s"), "\(good)")
            let short = try await Report(url, "--ttl", "10")
            #expect(short.has("note", "max-lag", "session TTL (10 s)"), "\(short)")
            try await set(["min-replicas-max-lag": "15"], on: servers.server)
            let long = try await Report(url)
            #expect(long.has("note", "max-lag", "session TTL (15 s)"), "\(long)")
            try await set(["min-replicas-max-lag": "0"], on: servers.server)
            let disabled = try await Report(url)
            #expect(disabled.has("note", "max-lag", "disables"), "\(disabled)")
            #expect(disabled["min-replicas"] == nil)
            try await set(["min-replicas-max-lag": "10", "min-replicas-to-write": "2"], on: servers.server)
            let refused = try await Report(url)
            #expect(refused.has("bad", "min-replicas", "all writes are refused: 1 of 2"), "\(refused)")
        }
    }

    @Test("it reports a replica that has stopped confirming, and that it is well again", .scriptsNeedReplicas())
    func lag() async throws {
        try await withReplicatedServers { servers in
            try await set(["min-replicas-to-write": "1", "min-replicas-max-lag": "1"], on: servers.server)
            try await servers.replica.pause()
            try await until("the replica lags") {
                let report = try await Report(servers.server.url)
                return report.has("note", "replicas", "has confirmed nothing for")
                    && report.has("bad", "min-replicas", "0 of 1")
            }
            try await servers.replica.resume()
            try await until("the replica confirms again") {
                let report = try await Report(servers.server.url)
                return report.has("ok", "replicas", "online") && report.has("ok", "min-replicas", "1 replicas")
            }
        }
    }

    @Test("it reports a replica that is not synchronized")
    func unsynchronized() async throws {
        try await withLocalRedis(.init(extra: ["repl-diskless-sync yes", "repl-diskless-sync-delay 3600"])) { server in
            let following = LocalRedis.Configuration(
                extra: ["replicaof 127.0.0.1 \(server.port)"], waitUntilLoaded: false)
            try await withLocalRedis(following) { _ in
                try await until("the replica is reported") {
                    try await Report(server.url).has("note", "replicas", "not synchronized")
                }
            }
        }
    }

    @Test("on a replica, it says so, and whether the replica has lost its primary")
    func replica() async throws {
        try await withReplicatedServers { servers in
            // The primary may consider the replica online a moment before the replica does.
            try await until("the replica is connected") {
                let report = try await Report(servers.replica.url)
                return report.has("bad", "role", "this is a replica")
                    && !report.has("bad", "role", "no connection to its primary")
            }
            await servers.server.kill()
            try await until("the replica has noticed it") {
                try await Report(servers.replica.url).has("bad", "role", "no connection to its primary")
            }
        }
    }

    @Test("without the rights to CONFIG and INFO, it names the checks that it leaves out, and succeeds")
    func leftOut() async throws {
        try await withLocalRedis { server in
            try await withRedisClient(url: server.unixURL) { admin in
                let (name, password) = try await DocumentedUsers().create("redisdc", on: admin)
                let url = server.url.replacing("//", with: "//\(name):\(password)@")
                let withoutConfig = try await Report(url)
                #expect(withoutConfig.status == 0)
                for setting in ["appendfsync", "min-replicas-to-write", "min-replicas-max-lag"] {
                    #expect(withoutConfig.has("note", "settings", setting), "\(withoutConfig)")
                }
                #expect(withoutConfig.has("ok", "rights", "all required rights"), "\(withoutConfig)")
                #expect(withoutConfig.has("note", "persistence", "no append-only file"), "\(withoutConfig)")
                _ = try await admin.send("ACL", "SETUSER", .string(name), "-info")
                let withoutInfo = try await Report(url)
                #expect(withoutInfo.status == 0)
                #expect(withoutInfo.has("note", "version", "persistence, memory, role and replicas"), "\(withoutInfo)")
                #expect(withoutInfo["replicas"] == nil && withoutInfo["persistence"] == nil)
            }
        }
    }

    @Test("with --namespace, it checks the rights of a tenant, and leaves no resources")
    func tenant() async throws {
        try await withLocalRedis { server in
            try await withRedisClient(url: server.unixURL) { admin in
                let (name, password) = try await DocumentedUsers().create("alice", on: admin)
                let url = server.url.replacing("//", with: "//\(name):\(password)@")
                let own = try await Report(url, "--namespace", "alice")
                #expect(own.status == 0)
                #expect(own.has("ok", "rights", "all required rights"), "\(own)")
                let others = try await Report(url, "--namespace", "alice-b")
                #expect(others.status == 77)
                #expect(others.has("bad", "rights", "LPUSH on rdc:{alice-b:*"), "\(others)")
                #expect(others.has("bad", "rights", "a command of the engine's scripts"), "\(others)")
                let all = try await Report(url)
                #expect(all.status == 77)
                let classic = try await admin.send("KEYS", "*sem*").array
                #expect(classic == [])
                let fields = try await admin.send("HKEYS", "rdc:{alice:0}:book").array?.compactMap(\.string) ?? []
                #expect(!fields.isEmpty && !fields.contains { $0.contains("doctor") }, "\(fields)")
            }
        }
    }

    private func set(_ settings: [String: String], on server: LocalRedis) async throws {
        try await withRedisClient(url: server.unixURL) { redis in
            for (name, value) in settings { _ = try await redis.send("CONFIG", "SET", .string(name), .string(value)) }
        }
    }
}
