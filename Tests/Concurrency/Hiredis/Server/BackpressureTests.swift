import RedisDCTesting
import TestSupport
import Testing

@testable import Hiredis
@testable import HiredisTestSupport

extension ServerTests {
    @Suite("More commands than the server takes", .serialized)
    struct BackpressureTests {
        @Test("wait without taking memory, and are all carried out in the end", arguments: [false, true])
        func bounded(isOnExecutor: Bool) async throws {
            try await withLocalRedis { server in
                var configuration = try RedisConfiguration(url: server.url)
                configuration.maxUnsentBytes = 256 * 1024
                configuration.commandTimeout = .seconds(120)
                try await withRedisClient(configuration) { redis in
                    _ = try await redis.send("PING")
                    try await server.pause()
                    let value = RedisArgument.bytes([UInt8](repeating: 1, count: 60_000))
                    let sending = Task(executorPreference: isOnExecutor ? redis.executor : nil) {
                        try await withThrowingTaskGroup(of: Void.self) { group in
                            for number in 0..<1000 {
                                group.addTask { _ = try await redis.send("SET", "key\(number)", value) }
                            }
                            try await group.waitForAll()
                        }
                    }
                    let connection = try #require(redis.onlyNode.link.current)
                    // The buffers of the system take some megabytes. As long as they do, room is given back
                    // for a moment before the next callers take it.
                    var unsent = 0
                    try await until("most callers wait behind commands that are not sent") {
                        unsent = connection.unsentBytes
                        return unsent > 400 * 1024 || (unsent >= 256 * 1024 && connection.waiterCount > 800)
                    }
                    #expect(unsent <= 400 * 1024)
                    let late = Task { try await redis.send(["PING"], timeout: .milliseconds(50)) }
                    do {
                        _ = try await late.value
                        Issue.record("a command passed others")
                    } catch let error as RedisError {
                        #expect(error.code == .timedOut && !error.mayHaveRun)
                    }
                    try await server.resume()
                    try await sending.value
                    #expect(try await redis.send("DBSIZE").integer == 1000)
                    #expect(connection.unsentBytes == 0)
                }
            }
        }
    }
}
