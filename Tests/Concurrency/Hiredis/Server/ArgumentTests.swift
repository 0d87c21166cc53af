import Hiredis
import TestSupport
import Testing

@testable import HiredisTestSupport

extension ServerTests {
    @Suite("Arguments", .serialized)
    struct ArgumentTests {
        @Test("variables of text, bytes and integers are arguments beside literals, and a reply may be ignored")
        func variables() async throws {
            try await withServer { _, redis in
                let (key, text, number, bytes) = ("key", "text", 7, [UInt8]([0xff, 0, 0x0a]))
                try await redis.send("SET", key, text)
                #expect(try await redis.send("GET", key).string == text)
                try await redis.send("SET", key, number)
                #expect(try await redis.send("INCRBY", key, 3).integer == 10)
                try await redis.send("SET", key, bytes)
                #expect(try await redis.send("GET", "key").bytes == bytes)
                try await redis.send("SET", key.dropLast(), RedisArgument.integer(4))
                #expect(try await redis.send("GET", "ke").string == "4")
                try await redis.send("DEL", key, "ke")
                #expect(try await redis.send(RedisCommand("EXISTS", key, "ke")).integer == 0)
                try await redis.send("SET", .string(key), .init(number))
            }
        }
    }
}
