import NIOCore
import RedisDCTesting
import TestSupport
import Testing

@testable import Hiredis

extension ServerTests {
    @Suite("Scripts that come first", .serialized)
    struct FirstCallerTests {
        @Test("no other caller has a new connection until those that come first have done what they need")
        func first() async throws {
            try await withLocalRedis { server in
                var configuration = try RedisConfiguration(url: server.url)
                configuration.bePatient()
                let redis = try RedisClient(configuration)
                let isAvailable = Locked([Bool]())
                let append = RedisScript("return redis.call('RPUSH', KEYS[1], ARGV[1])")
                let stop = redis.sendFirst(for: "k") { connection in
                    for number in 1...3 {
                        isAvailable.withLock { $0.append(redis.onlyNode.link.current != nil) }
                        _ = await redis.answer(append, ["k"], [.integer(number)], on: connection)
                    }
                }
                let waiting = Task { try await redis.send(["LRANGE", "k", "0", "-1"], timeout: .seconds(60)) }
                let running = Task { await redis.run() }
                #expect(try await waiting.value.array?.map(\.string) == ["1", "2", "3"])
                #expect(isAvailable.withLock { $0 } == [false, false, false])
                stop?()
                running.cancel()
                await running.value
            }
        }

        @Test("what is sent on a connection that has just ended fails on the event loop, where its caller expects it")
        func ended() async throws {
            try await withLocalRedis { server in
                try await withTestClient(url: server.url) { redis in
                    _ = try await redis.send("PING")
                    let connection = try #require(redis.onlyNode.link.current)
                    let firstCallers = FirstCallers()
                    let places = Locked([Bool]())
                    let script = RedisScript("return 1")
                    _ = firstCallers.add(slot: nil) { new in
                        connection.closeSoon(RedisError(.connectionLost, "ended by the test"))
                        _ = await connection.untilClosed()
                        #expect(new.isClosed)
                        guard case .failure = await redis.answer(script, ["k"], [], on: new) else { return }
                        places.withLock { $0.append(true) }
                    }
                    await firstCallers.send(on: connection) { _ in true }
                    #expect(places.withLock { $0 } == [true])
                }
            }
        }
    }
}
