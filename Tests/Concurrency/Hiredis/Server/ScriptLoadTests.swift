import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import HiredisTestSupport

extension ServerTests {
    @Suite("Loading scripts", .serialized, .timeLimit(.minutes(10)))
    struct ScriptLoadTests {
        private func run(_ count: Int, _ script: RedisScript, _ redis: RedisClient) async throws {
            try await withThrowingTaskGroup(of: RESPValue.self) { group in
                for number in 0..<count {
                    group.addTask { try await redis.script(script, keys: [], arguments: [.integer(number)]) }
                }
                var sum = 0
                for try await reply in group { sum += Int(reply.string ?? "") ?? 0 }
                #expect(sum == count * (count - 1) / 2)
            }
        }

        @Test("8,000 callers of a script that the server does not know load it once")
        func once() async throws {
            try await withServer { _, redis in
                let script = RedisScript("return ARGV[1]")
                let source = RedisScript("return ARGV[1] -- another")
                try await run(8000, script, redis)
                #expect(try await redis.calls(of: "script|load") == 1)
                for loads in 1...3 {
                    // The client knows the hash, but the server does not know the script any more.
                    _ = try await redis.send("SCRIPT", "FLUSH")
                    let before = try await redis.calls(of: "script|load")
                    try await run(8000, script, redis)
                    #expect(try await redis.calls(of: "script|load") - before == 1, "\(loads)")
                }
                let before = try await redis.calls(of: "script|load")
                try await run(8000, source, redis)
                try await run(8000, script, redis)
                #expect(try await redis.calls(of: "script|load") - before == 1)
                #expect(try await redis.calls(of: "eval") == 0)
            }
        }

        @Test("a caller that is cancelled or runs out of time while a script is loaded leaves the others waiting")
        func left() async throws {
            try await withServer { server, redis in
                let script = RedisScript("return ARGV[1]")
                try await expectPong(redis)
                try await server.pause()
                let first = Task { try await redis.script(script, keys: [], arguments: [1], timeout: patience) }
                let others = (2..<1000).map { number in
                    Task { try await redis.script(script, keys: [], arguments: [.integer(number)], timeout: patience) }
                }
                first.cancel()
                #expect(await redisError { _ = try await first.value }?.code == .cancelled)
                let late = await redisError {
                    _ = try await redis.script(script, keys: [], arguments: [1], timeout: .milliseconds(50))
                }
                #expect(late?.code == .timedOut && late?.mayHaveRun == false)
                try await server.resume()
                for (index, task) in others.enumerated() {
                    #expect(try await task.value.string == "\(index + 2)")
                }
                #expect(try await redis.calls(of: "script|load") == 1)
            }
        }

        @Test("a script is loaded on the next connection when the one that loads it is lost")
        func lost() async throws {
            try await withProxiedServer { proxy, redis, direct in
                try await expectPong(redis)
                for round in 1...20 {
                    let script = RedisScript("return ARGV[1] -- \(round)")
                    await proxy.dropNextReply(matching: "LOAD")
                    try await run(100, script, redis)
                    #expect(proxy.counters.droppedReplies == round)
                }
            }
        }
    }
}
