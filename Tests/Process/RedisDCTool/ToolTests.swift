import Foundation
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import RedisDCToolTestSupport

/// The tool as a process: its output and its exit status.
@Suite("The redisdc tool", .serialized)
struct ToolTests {
    @Test("the demo with two processes keeps the order for 10,000 rounds")
    func rendezvous() async throws {
        try await withLocalRedis { server in
            let demo = try await redisdc("demo", "10000", "--json", url: server.url)
            #expect(demo.status == 0, "\(demo.error)")
            #expect(demo.output.contains(#""firstHalfBeforeOthersSecond":[true,true]"#))
            #expect(demo.output.contains(#""rounds":10000"#))
        }
    }

    @Test("the demo runs on a cluster, and leaves no key behind")
    func demoOnCluster() async throws {
        try await withLocalCluster(.init(replicasPerMaster: 0, nodeTimeout: .seconds(20))) { cluster in
            let demo = try await redisdc("demo", "5", url: cluster.url)
            #expect(demo.status == 0, "\(demo.error)")
            for node in cluster.nodes {
                try await withRedisClient(url: node.url) { redis in
                    let left = try await redis.send("KEYS", "*").array
                    #expect(left == [])
                }
            }
        }
    }

    @Test("the demo with five processes keeps the order, and leaves no key behind")
    func rendezvousOfFive() async throws {
        try await withLocalRedis { server in
            let page = FileManager.default.temporaryDirectory.appendingPathComponent("demo-\(UUID()).html")
            defer { try? FileManager.default.removeItem(at: page) }
            let demo = try await redisdc("demo", "200", "--nodes", "5", "--html", page.path, url: server.url)
            #expect(demo.status == 0, "\(demo.error)")
            let picture = try String(contentsOf: page, encoding: .utf8)
            // Six rounds of five processes with two events each, and an arrow to each other process.
            #expect(picture.split(separator: "<circle").count == 1 + 60)
            #expect(picture.split(separator: "class=\"arrow\"").count == 1 + 6 * 5 * 4)
            #expect(!picture.contains("arrow wrong") && picture.contains("200 rounds"))
            #expect(demo.output.contains("200 rounds"))
            try await withRedisClient(url: server.unixURL) { redis in
                let left = try await redis.send("KEYS", "*").array
                #expect(left == [])
            }
        }
    }
}
