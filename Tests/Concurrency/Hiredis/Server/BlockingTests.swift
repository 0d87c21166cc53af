import RedisDCTesting
import TestRandom
import TestSupport
import Testing

@testable import Hiredis
@testable import HiredisTestSupport

extension ServerTests {
    @Suite("Blocking commands on lanes", .serialized)
    struct BlockingTests {
        @Test("a blocked command does not delay other commands")
        func doesNotBlockOthers() async throws {
            try await withServer { _, redis in
                let blocked = Task { try await redis.block(.brpop("list"), timeout: nil) { _ in } }
                try await until("the command is blocked") { try await redis.blockedClients() == 1 }
                try await expectPong(redis)
                _ = try await redis.send("LPUSH", "list", "x")
                #expect(try await blocked.value?.array?.last?.string == "x")
            }
        }

        @Test("a timeout returns nil, takes no element and leaves no client blocked", arguments: [1, 7, 30])
        func timeout(milliseconds: Int) async throws {
            try await withServer { _, redis in
                for _ in 0..<20 {
                    #expect(try await redis.block(.brpop("list"), timeout: .milliseconds(milliseconds)) { _ in } == nil)
                }
                try await until("no client is blocked") { try await redis.blockedClients() == 0 }
                _ = try await redis.send("LPUSH", "list", "x")
                #expect(try await redis.integer("LLEN", "list") == 1)
            }
        }

        @Test("a cancelled wait throws, takes no element, and its lane is reused")
        func cancel() async throws {
            try await withServer { _, redis in
                for _ in 0..<50 {
                    let wait = Task { try await redis.block(.brpop("list"), timeout: nil) { _ in } }
                    try await until("the command is blocked") { try await redis.blockedClients() == 1 }
                    wait.cancel()
                    let error = await redisError { _ = try await wait.value }
                    #expect(error?.code == .cancelled)
                    try await until("no client is blocked") { try await redis.blockedClients() == 0 }
                }
                _ = try await redis.send("LPUSH", "list", "x")
                #expect(try await redis.integer("LLEN", "list") == 1)
                // The command connection and the lanes; an interruption may overlap the next wait and need a second lane.
                let connections = try #require(Int(try await redis.info("total_connections_received") ?? ""))
                // An interruption that is not answered within a second drops its lane.
                #expect(connections <= 25)
            }
        }

        @Test("when cancel and push race, each element is delivered or given back exactly once")
        func cancelRacesPush() async throws {
            var generator = SplitMix(seed: testSeed())
            try await withServer { server, redis in
                let delivered = Record<String>()
                let rounds = 3000
                try await withTestClient(url: server.unixURL) { other in
                    for round in 0..<rounds {
                        let wait = Task {
                            let reply = try await redis.block(.brpop("list"), timeout: nil) { late in
                                let element = late.array?.last?.string ?? "?"
                                _ = try? await redis.send("RPUSH", "list", .string(element))
                            }
                            if let element = reply?.array?.last?.string { delivered.add(element) }
                        }
                        let push = Task { _ = try await other.send("LPUSH", "list", .integer(round)) }
                        // The cancel comes before, after, and mostly close to the push.
                        let pause = Int.random(in: 0...300, using: &generator)
                        if round % 3 == 0 { try await Task.sleep(for: .microseconds(pause)) }
                        wait.cancel()
                        _ = try? await wait.value
                        try await push.value
                    }
                    let left = try await redis.send("LRANGE", "list", 0, -1).array?.compactMap(\.string) ?? []
                    let all = (left + delivered.all).compactMap { Int($0) }.sorted()
                    #expect(all == Array(0..<rounds))
                    #expect(!delivered.all.isEmpty, "the race was never won by the push")
                    #expect(!left.isEmpty, "the race was never won by the cancel")
                    try await until("every lane is back") { redis.onlyNode.lanes.inUseCount == 0 }
                }
            }
        }

        @Test("when timeout and push race, each element is delivered or stays in the list")
        func timeoutRacesPush() async throws {
            var generator = SplitMix(seed: testSeed())
            try await withServer { server, redis in
                let rounds = 1000
                var delivered: [Int] = []
                try await withTestClient(url: server.unixURL) { other in
                    for round in 0..<rounds {
                        let pause = Int.random(in: 500...3500, using: &generator)
                        async let push: Void = {
                            try await Task.sleep(for: .microseconds(pause))
                            _ = try await other.send("LPUSH", "list", .integer(round))
                        }()
                        let reply = try await redis.block(.brpop("list"), timeout: .milliseconds(2)) { late in
                            _ = try? await redis.send(
                                "RPUSH", "list", late.array?.last?.bytes.map { .bytes($0) } ?? "?")
                        }
                        if let element = reply?.array?.last?.integer { delivered.append(element) }
                        try await push
                    }
                }
                let left = try await redis.send("LRANGE", "list", 0, -1).array?.compactMap(\.integer) ?? []
                #expect((left + delivered).sorted() == Array(0..<rounds))
                #expect(!delivered.isEmpty)
            }
        }

        @Test(
            "waits that are cancelled while a lane is being connected leave it to the next ones",
            arguments: [true, false])
        func cancelledWhileConnecting(isAwaited: Bool) async throws {
            try await withServer {
                $0.maxLanes = 3
            } _: { server, redis in
                let lanes = redis.onlyNode.lanes
                func begin() -> Task<RedisError?, Never> {
                    Task { await redisError { _ = try await redis.block(.brpop("list"), timeout: nil) { _ in } } }
                }
                try await server.pause()
                for _ in 0..<100 {
                    let wait = begin()
                    try await until("it waits for a lane") { lanes.waitingCount == 1 }
                    #expect(lanes.inUseCount == 1)
                    wait.cancel()
                    #expect(await wait.value?.code == .cancelled)
                }
                let wait = isAwaited ? begin() : nil
                if isAwaited { try await until("it waits for a lane") { lanes.waitingCount == 1 } }
                try await server.resume()
                if !isAwaited { try await until("the lane is kept") { lanes.inUseCount == 0 } }
                let last = wait ?? begin()
                try await until("it waits in Redis") { try await redis.blockedClients() == 1 }
                #expect(lanes.inUseCount == 1)
                _ = try await redis.send("LPUSH", "list", "a")
                #expect(await last.value == nil)
                try await until("the lane is back") { lanes.inUseCount == 0 }
            }
        }

        @Test("a blocking command beyond maxLanes fails, and succeeds when a lane is free")
        func cap() async throws {
            try await withServer {
                $0.maxLanes = 3
            } _: { _, redis in
                let waits = (0..<3).map { _ in Task { try await redis.block(.brpop("list"), timeout: nil) { _ in } } }
                try await until("all lanes are blocked") { try await redis.blockedClients() == 3 }
                let error = await redisError { _ = try await redis.block(.brpop("list"), timeout: nil) { _ in } }
                #expect(error?.code == .tooManyLanes)
                #expect(error?.message.contains("maxLanes") == true)
                _ = try await redis.send("LPUSH", "list", "a", "b", "c")
                for wait in waits { #expect(try await wait.value != nil) }
                #expect(try await redis.block(.brpop("list"), timeout: .milliseconds(1)) { _ in } == nil)
            }
        }

        @Test("idle lanes are closed")
        func idleLanes() async throws {
            try await withServer {
                $0.laneIdleTimeout = .milliseconds(50)
            } _: { _, redis in
                for _ in 0..<5 { _ = try await redis.block(.brpop("list"), timeout: .milliseconds(1)) { _ in } }
                try await until("only the command connection is left") {
                    try await redis.info("connected_clients") == "1"
                }
            }
        }

        @Test("a killed lane fails its wait with .connectionLost, and a wrong type with .wrongType")
        func killed() async throws {
            try await withServer { _, redis in
                let wait = Task {
                    await redisError { _ = try await redis.block(.brpop("list"), timeout: nil) { _ in } }
                }
                try await until("the command is blocked") { try await redis.blockedClients() == 1 }
                _ = try await redis.send("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
                let error = await wait.value
                #expect(error?.code == .connectionLost)
                #expect(error?.mayHaveRun == true)
                _ = try await redis.send("SET", "s", "x")
                let wrong = await redisError { _ = try await redis.block(.brpop("s"), timeout: nil) { _ in } }
                #expect(wrong?.code == .wrongType)
            }
        }

        @Test("a cancelled wait on a stopped server ends in time, and a late element is given back")
        func stalledServer() async throws {
            try await withServer {
                $0.settleTimeout = .milliseconds(100)
            } _: { server, redis in
                let givenBack = Record<RESPValue>()
                let wait = Task {
                    try await redis.block(.brpop("list"), timeout: nil) { late in givenBack.add(late) }
                }
                try await until("the command is blocked") { try await redis.blockedClients() == 1 }
                try await withTestClient(url: server.unixURL) { other in
                    _ = try await other.send("PING")
                    try await server.pause()
                    let push = Task { try await other.send(["LPUSH", "list", "x"], timeout: .seconds(60)) }
                    wait.cancel()
                    let error = await redisError { _ = try await wait.value }
                    #expect(error?.code == .cancelled)
                    #expect(error?.mayHaveRun == true)
                    try await server.resume()
                    _ = try await push.value
                    // The server may execute the push and the interruption in either order.
                    try await until("the element is settled") {
                        let left = try await redis.integer("LLEN", "list")
                        return left + givenBack.count == 1
                    }
                }
            }
        }
    }
}
