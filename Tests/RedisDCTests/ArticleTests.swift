import Foundation
import Hiredis
import RedisDC
import RedisDCTesting
import TestSupport
import Testing

/// The examples of the article "Testing your code", line by line, as tests that run.
@Suite("The article on testing")
struct ArticleTests {
    @Test("contains no example that is not run here")
    func examples() throws {
        let article = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../Sources/RedisDCTesting/RedisDCTesting.docc/TestingYourCode.md")
        let examples = DocumentedCode.examples(ofMarkdown: try String(contentsOf: article, encoding: .utf8))
        #expect(examples.count == 4)
        let tests = DocumentedCode.lines(try String(contentsOfFile: #filePath, encoding: .utf8)).joined(separator: "\n")
        for example in examples { #expect(tests.contains(example), "no test contains this example:\n\(example)") }
    }

    @Test("a crash of Redis")
    func crash() async throws {
        try await withLocalRedis(.init(persistence: .appendOnly(fsync: .always))) { server in
            try await withRedisClient(url: server.url) { redis in
                _ = try await redis.send("SET", "key", "value")
                await server.kill()
                try await server.restart()
                #expect(try await redis.send("GET", "key").string == "value")
            }
        }
    }

    @Test("a lost reply")
    func lostReply() async throws {
        try await withLocalRedis { server in
            try await withFaultProxy(to: .port(server.port)) { proxy in
                try await withRedisClient(url: "redis://127.0.0.1:\(proxy.port)") { redis in
                    try await withCoordinator(redis: redis) { coordinator in
                        let seats = try coordinator.semaphore("seats", permits: 4)
                        try await seats.signal()
                        await proxy.dropNextReply(matching: "EVALSHA")
                        try await seats.signal()
                        #expect(try await seats.value == 6)
                    }
                }
            }
        }
    }

    @Test("a pause")
    func pause() async throws {
        try await withLocalRedis { server in
            try await withRedisClient(url: server.url) { redis in
                var configuration = CoordinatorConfiguration()
                configuration.ttl = .seconds(1)
                try await withCoordinator(redis: redis, configuration: configuration) { coordinator in
                    let lease = try await coordinator.mutex("kitchen").lock()
                    try await server.pause()
                    while lease.isHeld { try await Task.sleep(for: .milliseconds(20)) }
                    try await server.resume()
                }
            }
        }
    }

    @Test("a failover")
    func failover() async throws {
        try await withLocalSentinel { sentinel in
            try await withRedisClient(url: sentinel.url) { redis in
                _ = try await redis.send("SET", "key", "value")
                let old = try await sentinel.master()
                await old.kill()
                _ = try await sentinel.waitForMaster(otherThan: old)
                _ = try await redis.send("GET", "key")
            }
        }
    }
}
