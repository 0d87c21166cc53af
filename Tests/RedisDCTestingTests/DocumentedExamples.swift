// The examples of the documentation, line by line, as tests that run.
import Foundation
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@Suite("Documented examples")
struct DocumentedExamples {
    @Test("every example in a doc comment equals code that is compiled and run here")
    func examplesAreCompiled() throws {
        let tests = DocumentedCode.lines(try String(contentsOfFile: #filePath, encoding: .utf8)).joined(separator: "\n")
        var count = 0
        for file in try #require(FileManager.default.enumerator(at: Self.sources, includingPropertiesForKeys: nil)) {
            guard let file = file as? URL, file.pathExtension == "swift" else { continue }
            for example in Self.examples(of: try String(contentsOf: file, encoding: .utf8)) {
                #expect(
                    tests.contains(example), "\(file.lastPathComponent): no test contains this example:\n\(example)")
                count += 1
            }
        }
        #expect(count >= 5)
    }

    private static let sources = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../../Sources/RedisDCTesting")

    /// Returns the code of each example in the doc comments of a source text.
    private static func examples(of source: String) -> [String] {
        source.components(separatedBy: "/// ```swift\n").dropFirst().map { rest in
            let example = rest.components(separatedBy: "/// ```\n")[0]
            let code = example.components(separatedBy: "\n").map {
                $0.trimmingCharacters(in: .whitespaces).dropFirst(3)
            }
            return DocumentedCode.lines(code.joined(separator: "\n")).joined(separator: "\n")
        }
    }

    // MARK: - The examples

    @Test("FaultProxy: a dropped reply fails the command")
    func faultProxy() async throws {
        try await withLocalRedis { redis in
            try await withFaultProxy(to: .port(redis.port)) { proxy in
                try await withRedisClient(url: "redis://127.0.0.1:\(proxy.port)") { client in
                    await proxy.dropNextReply(matching: "LPUSH")
                    let push = Task { try await client.send("LPUSH", "list", "element") }
                    try await proxy.waitUntil { $0.droppedReplies == 1 }
                    await #expect(throws: RedisError.self) { try await push.value }
                }
            }
        }
    }

    @Test("LocalRedis: a killed server keeps its append-only data")
    func localRedis() async throws {
        try await withLocalRedis(.init(persistence: .appendOnly(fsync: .always))) { redis in
            try await withRedisClient(url: redis.url) { client in
                _ = try await client.send("SET", "key", "value")
                await redis.kill()
                try await redis.restart()
                #expect(try await client.send("GET", "key").string == "value")
            }
        }
    }

    @Test("LocalSentinel: a replica takes the place of a killed master")
    func localSentinel() async throws {
        try await withLocalSentinel { sentinel in
            let old = try await sentinel.master()
            await old.kill()
            let new = try await sentinel.waitForMaster(otherThan: old)
            #expect(new.port != old.port)
            try await old.restart()
            try await sentinel.waitUntilHealthy()
        }
    }

    @Test("LocalSentinel: a master is separated, and follows the new one afterwards")
    func localSentinelSplit() async throws {
        try await withLocalSentinel(.init(isSplittable: true)) { sentinel in
            let old = try await sentinel.master()
            try await sentinel.separate(old)
            let new = try await sentinel.waitForMaster(otherThan: old)
            #expect(new.port != old.port)
            // Clients of old.url are on its side of the partition, those of sentinel.url on the other.
            try await sentinel.reunite(old)
            try await sentinel.waitUntilHealthy()  // the old master follows the new one
        }
    }

    @Test("LocalCluster: a replica takes the place of a killed master")
    func localCluster() async throws {
        try await withLocalCluster { cluster in
            let old = try await cluster.master(ofKey: "account")
            await old.kill()
            try await cluster.waitUntilHealthy()
            let new = try await cluster.master(ofKey: "account")
            #expect(new !== old)
        }
    }

    @Test("LocalCluster: a separated master follows the new one afterwards")
    func localClusterSeparate() async throws {
        try await withLocalCluster(.init(isSplittable: true)) { cluster in
            let old = try await cluster.master(ofKey: "account")
            let replica = try await cluster.replicas(of: old)[0]
            try await cluster.separate(old)
            try await cluster.waitUntilPromoted(replica)
            try await cluster.reunite(old)
            try await cluster.waitUntilHealthy()  // the old master follows the new one
        }
    }

    @Test("TestCertificates: a client rejects an expired certificate", .needsTLS)
    func testCertificates() async throws {
        try await withTestCertificates(.expired) { certificates in
            try await withLocalRedis(.init(tls: certificates)) { redis in
                var configuration = try RedisConfiguration(url: #require(redis.tlsURL))
                configuration.tls?.authority = .file(certificates.authority)
                configuration.commandTimeout = .milliseconds(500)
                try await withRedisClient(configuration) { client in
                    await #expect(throws: RedisError.self) { try await client.send("PING") }
                }
            }
        }
    }
}
