import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import HiredisTestSupport

extension ServerTests {
    @Suite("Commands", .serialized)
    struct CommandTests {
        @Test("10,000 concurrent commands on one connection each get their own reply")
        func concurrentCommands() async throws {
            try await withServer { _, redis in
                try await withThrowingTaskGroup(of: Bool.self) { group in
                    for number in 0..<10_000 {
                        group.addTask { try await redis.send("ECHO", .integer(number)).integer == number }
                    }
                    var right = 0
                    for try await isRight in group where isRight { right += 1 }
                    #expect(right == 10_000)
                }
                let connected = try await redis.info("connected_clients")
                #expect(connected == "1")
            }
        }

        @Test(
            "commands of one task run in the order in which it sends them")
        func order() async throws {
            try await withServer { _, redis in
                let log = try await redis.pipeline((0..<5000).map { ["RPUSH", "log", .integer($0)] })
                #expect(log.map(\.integer) == (1...5000).map { $0 })
                let values = try await redis.send("LRANGE", "log", 0, -1).array?.map(\.integer)
                #expect(values == (0..<5000).map { $0 })
            }
        }

        @Test("commands on a dedicated connection keep nobody waiting")
        func dedicated() async throws {
            try await withServer { _, redis in
                async let blocked = redis.withDedicatedConnection {
                    try await $0.pipeline([["SET", "k", "v"], ["BLPOP", "list", "0"]])
                }
                while try await redis.info("blocked_clients") != "1" {}
                #expect(try await redis.send("GET", "k").string == "v")
                _ = try await redis.send("RPUSH", "list", "x")
                let replies = try await blocked
                #expect(replies == [.status("OK"), .array([.bytes(Array("list".utf8)), .bytes(Array("x".utf8))])])
            }
        }

        @Test("a dedicated connection stays the same for its scope, and returns to the pool afterwards")
        func dedicatedConnectionIsReused() async throws {
            try await withServer { _, redis in
                func ids() async throws -> [Int?] {
                    try await redis.withDedicatedConnection { connection in
                        let first = try await connection.pipeline([["CLIENT", "ID"]])
                        let second = try await connection.pipeline([["NONSENSE"], ["CLIENT", "ID"]])
                        #expect(second[0].errorMessage != nil)
                        return [first[0].integer, second[1].integer]
                    }
                }
                let first = try await ids()
                #expect(first[0] != nil && first[0] == first[1])
                #expect(try await ids() == first)
                #expect(try await redis.send("CLIENT", "ID").integer != first[0])
            }
        }

        @Test("a dedicated connection is closed when the body throws, and the body's error passes on")
        func throwingBody() async throws {
            struct Refusal: Error {}
            try await withServer { _, redis in
                await #expect(throws: Refusal.self) {
                    try await redis.withDedicatedConnection { connection in
                        _ = try await connection.pipeline([["PING"]])
                        throw Refusal()
                    }
                }
                while try await redis.info("connected_clients") != "1" {}
            }
        }

        @Test("a dedicated connection is closed when its time is up, also while the body sends nothing")
        func dedicatedTimeout() async throws {
            try await withServer { _, redis in
                var timeout = Duration.milliseconds(50)
                // On a busy machine the time may be up before the connection is made.
                try await until("the time is up after the command was sent") {
                    let blocked = await redisError {
                        try await redis.withDedicatedConnection(timeout: timeout) {
                            _ = try await $0.pipeline([["BLPOP", "list", "0"]])
                        }
                    }
                    timeout *= 2
                    #expect(blocked?.code == .timedOut || blocked?.mayHaveRun == false)
                    return blocked?.mayHaveRun == true
                }
                while try await redis.info("connected_clients") != "1" {}
                let late = await redisError {
                    try await redis.withDedicatedConnection(timeout: .milliseconds(50)) { connection in
                        while try await redis.info("connected_clients") != "1" {}
                        _ = try await connection.pipeline([["PING"]])
                    }
                }
                #expect(late?.code == .timedOut)
                #expect(late?.mayHaveRun == false)
            }
        }

        @Test("a dedicated connection that is busy when the body returns is closed, and refuses commands from then on")
        func escapedConnection() async throws {
            try await withServer { _, redis in
                let (escaped, blocked) = try await redis.withDedicatedConnection { connection in
                    let blocked = Task { try await connection.pipeline([["PING"], ["BLPOP", "list", "0"]]) }
                    while try await redis.info("blocked_clients") != "1" {}
                    return (connection, blocked)
                }
                await #expect(throws: RedisError.self) { try await blocked.value }
                while try await redis.info("connected_clients") != "1" {}
                let error = await redisError { _ = try await escaped.pipeline([["PING"]]) }
                #expect(error?.code == .invalidArgument)
            }
        }

        @Test("cancelling the use of a dedicated connection closes it, and only it")
        func cancelledDedicated() async throws {
            try await withServer { _, redis in
                let waiting = Task {
                    try await redis.withDedicatedConnection {
                        try await $0.pipeline([["PING"], ["BLPOP", "list", "0"]])
                    }
                }
                while try await redis.info("blocked_clients") != "1" {}
                waiting.cancel()
                let error = await redisError { _ = try await waiting.value }
                #expect(error?.code == .cancelled)
                while try await redis.info("connected_clients") != "1" {}
                _ = try await redis.send("RPUSH", "list", "x")
                #expect(try await redis.send("LLEN", "list").integer == 1)
            }
        }

        @Test("the longest representable durations work as unlimited ones")
        func extremes() async throws {
            let longest = Duration.seconds(Int64.max)
            try await withServer(configure: {
                ($0.connectTimeout, $0.commandTimeout, $0.silenceLimit) = (longest, longest, longest)
                ($0.reconnectDelay, $0.laneIdleTimeout) = (.milliseconds(1)...longest, longest)
                ($0.blockingSlice, $0.settleTimeout, $0.probeInterval) = (longest, longest, longest)
            }) { _, redis in
                #expect(try await redis.send(["PING"], timeout: longest).string == "PONG")
                let script = RedisScript("return ARGV[1]")
                let echo = try await redis.script(script, keys: [], arguments: ["a"], timeout: longest)
                #expect(echo.string == "a")
                let waiting = Task {
                    try await redis.block(.brpop("list"), timeout: longest) { _ in }
                }
                while try await redis.info("blocked_clients") != "1" {}
                try await redis.withSubscription(to: ["news"]) { events in
                    #expect(try await redis.publish("b", to: "news") == 1)
                    guard case .message(let message)? = try await events.next() else { return }
                    #expect(message.text == "b")
                }
                _ = try await redis.send("LPUSH", "list", "c")
                #expect(try await waiting.value?.array?.last?.string == "c")
            }
        }

        @Test("arbitrary bytes are stored and returned unchanged")
        func bytes() async throws {
            try await withServer { _, redis in
                let bytes = (0...255).map { UInt8($0) } + Array("\r\n$5\r\n".utf8)
                _ = try await redis.send("SET", "k", .bytes(bytes))
                #expect(try await redis.send("GET", "k") == .bytes(bytes))
                let big = [UInt8](repeating: 7, count: 8 << 20)
                _ = try await redis.send("SET", "k", .bytes(big))
                #expect(try await redis.send("GET", "k") == .bytes(big))
            }
        }

        @Test("a pipeline returns error replies at their positions")
        func pipelineErrors() async throws {
            try await withServer { _, redis in
                let replies = try await redis.pipeline([["SET", "s", "x"], ["LPUSH", "s", "y"], ["GET", "s"]])
                #expect(replies[0] == .status("OK"))
                #expect(replies[1].errorMessage?.hasPrefix("WRONGTYPE") == true)
                #expect(replies[2] == .bytes(Array("x".utf8)))
                #expect(try await redis.pipeline([]).isEmpty)
            }
        }

        @Test("the client uses the configured Unix socket, database, ACL user and client name")
        func configuration() async throws {
            try await withLocalRedis(.init(aclUsers: ["alice on >se%c:ret ~* &* +@all"])) { server in
                let url = "unix://alice:se%25c%3Aret@\(server.socketPath)?db=3"
                var configuration = try RedisConfiguration(url: url)
                configuration.clientName = "my-game"
                try await withRedisClient(configuration) { redis in
                    #expect(try await redis.send("ACL", "WHOAMI").string == "alice")
                    let client = try await redis.send("CLIENT", "INFO").string ?? ""
                    #expect(client.contains("db=3"))
                    #expect(client.contains("name=my-game"))
                    #expect(redis.serverVersion ?? ServerVersion(0, 0) >= .minimum)
                }
            }
        }
    }
}
