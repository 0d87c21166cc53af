import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import HiredisTestSupport

extension ServerTests {
    @Suite("Commands", .serialized)
    struct CommandTests {
        @Test("a transaction runs all commands, or none if one cannot be queued")
        func transaction() async throws {
            try await withServer { _, redis in
                let replies = try await redis.transaction([["SET", "a", 1], ["INCR", "a"]])
                #expect(replies == [.status("OK"), .integer(2)])
                let error = await redisError { _ = try await redis.transaction([["SET", "a", 9], ["NOSUCH"]]) }
                #expect(error?.code == .serverError)
                #expect(error?.message.contains("NOSUCH") == true)
                #expect(try await redis.integer("GET", "a") == 2)
            }
        }

        @Test("a wrong type, an unknown command and a wrong argument have different codes and keep the connection")
        func serverErrors() async throws {
            try await withServer { _, redis in
                _ = try await redis.send("SET", "s", "x")
                let wrongType = await redisError { _ = try await redis.send("LPUSH", "s", "y") }
                #expect(wrongType?.code == .wrongType)
                #expect(wrongType?.command == "LPUSH")
                let unknown = await redisError { _ = try await redis.send("NOSUCH") }
                #expect(unknown?.code == .serverError)
                #expect(unknown?.mayHaveRun == false)
                #expect(try await redis.info("total_connections_received") == "2")
            }
        }

        @Test("a missing script is loaded, and loaded again after SCRIPT FLUSH")
        func scripts() async throws {
            try await withServer { _, redis in
                let script = RedisScript("return redis.call('INCRBY', KEYS[1], ARGV[1])")
                for expected in 1...5 {
                    #expect(try await redis.script(script, keys: ["n"], arguments: [1]) == .integer(expected))
                    _ = try await redis.send("SCRIPT", "FLUSH")
                }
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 0..<500 {
                        group.addTask { _ = try await redis.script(script, keys: ["m"], arguments: [1]) }
                        group.addTask { _ = try await redis.send("SCRIPT", "FLUSH", "SYNC") }
                    }
                    try await group.waitForAll()
                }
                // Each call ran exactly once, although the script was missing several times.
                #expect(try await redis.integer("GET", "m") == 500)
                let failing = RedisScript("return redis.error_reply('MINE oh no')")
                let error = await redisError { _ = try await redis.script(failing, keys: []) }
                #expect(error?.message.hasPrefix("MINE oh no") == true)
            }
        }
    }
}
