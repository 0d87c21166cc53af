import NIOCore
import RedisDCTesting
import TestSupport
import Testing

@testable import Hiredis

extension ServerTests {
    @Suite("Scripts that come first", .serialized)
    struct FirstScriptTests {
        @Test("no other caller has a new connection until the scripts that come first are sent")
        func first() async throws {
            try await withLocalRedis { server in
                var configuration = try RedisConfiguration(url: server.url)
                configuration.bePatient()
                let redis = try RedisClient(configuration)
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

        @Test("scripts for a connection that has just ended fail on the event loop, where their callers expect it")
        func ended() async throws {
            try await withLocalRedis { server in
                try await withTestClient(url: server.url) { redis in
                    _ = try await redis.send("PING")
                    let connection = try #require(redis.onlyNode.link.current)
                    let firstScripts = FirstScripts()
                    let places = Locked([Bool]())
                    let script = RedisScript("return 1")
                    _ = firstScripts.add(slot: nil) {
                        connection.closeSoon(RedisError(.connectionLost, "ended by the test"))
                        _ = await connection.untilClosed()
                        return [
                            FirstScript(script, keys: ["k"], arguments: [], timeout: .seconds(60)) { result in
                                guard case .failure = result else { return }
                                places.withLock { $0.append(connection.eventLoop.inEventLoop) }
                            }
                        ]
                    }
                    await firstScripts.send(on: connection) { _ in true }
                    try await until("the script has failed") { places.withLock { !$0.isEmpty } }
                    #expect(places.withLock { $0 } == [true])
                }
            }
        }
    }
}
