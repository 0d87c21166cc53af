import RedisDCTesting
import TestSupport
import Testing

@testable import Hiredis

extension ServerTests {
    @Suite("Scripts that come first")
    struct FirstScriptTests {
        @Test("no other caller has a new connection until the scripts that come first are sent")
        func first() async throws {
            try await withLocalRedis { server in
                let redis = try RedisClient(RedisConfiguration(url: server.url))
                let isAvailable = Locked([Bool]())
                let stop = redis.sendFirst(for: "k") {
                    isAvailable.withLock { $0.append(redis.onlyNode.link.current != nil) }
                    let script = RedisScript("return redis.call('SET', KEYS[1], 'first')")
                    return [FirstScript(script, keys: ["k"], arguments: [], timeout: .seconds(60)) { _ in }]
                }
                let waiting = Task { try await redis.send(["GET", "k"], timeout: .seconds(60)) }
                let running = Task { await redis.run() }
                #expect(try await waiting.value.string == "first")
                #expect(isAvailable.withLock { $0 } == [false])
                stop?()
                running.cancel()
                await running.value
            }
        }
    }
}
