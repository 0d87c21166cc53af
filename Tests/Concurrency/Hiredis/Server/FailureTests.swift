import Foundation
import Hiredis
import NIOCore
import NIOPosix
import RedisDCTesting
import TestSupport
import Testing

@testable import HiredisTestSupport

extension ServerTests {
    @Suite("Cancellation, timeouts and broken connections", .serialized)
    struct FailureTests {
        @Test("1,000 cancelled commands fail immediately, and 1,000 others get their own replies")
        func cancelThousand() async throws {
            try await withServer { server, redis in
                _ = try await redis.send("PING")
                try await server.pause()
                let tasks = (0..<2000).map { number in
                    Task { try await redis.send(["ECHO", .integer(number)], timeout: .seconds(60)) }
                }
                for number in stride(from: 0, to: 2000, by: 2) { tasks[number].cancel() }
                for number in stride(from: 0, to: 2000, by: 2) {
                    // The server is stopped, so only the cancellation can have ended the command.
                    let error = await redisError { _ = try await tasks[number].value }
                    #expect(error?.code == .cancelled)
                }
                try await server.resume()
                for number in stride(from: 1, to: 2000, by: 2) {
                    #expect(try await tasks[number].value.integer == number)
                }
                #expect(try await redis.info("total_connections_received") == "2")
            }
        }

        @Test("a task that is already cancelled sends no command")
        func cancelledBefore() async throws {
            try await withServer { _, redis in
                _ = try await redis.send("PING")
                let task = Task {
                    withUnsafeCurrentTask { $0?.cancel() }
                    _ = try await redis.send("INCR", "n")
                }
                let error = await redisError { try await task.value }
                #expect(error?.code == .cancelled)
                #expect(error?.mayHaveRun == false)
                #expect(try await redis.send("GET", "n").isNull)
            }
        }

        @Test("the late reply of a cancelled command goes to settle")
        func settled() async throws {
            try await withServer { server, redis in
                _ = try await redis.send("RPUSH", "list", "element")
                try await server.pause()
                let settled = Record<RESPValue>()
                let task = Task {
                    _ = try await redis.send(["LPOP", "list"], timeout: .seconds(60)) { reply in settled.add(reply) }
                }
                task.cancel()
                let error = await redisError { try await task.value }
                #expect(error?.code == .cancelled)
                try await server.resume()
                try await expectPong(redis)
                // Either the command was never sent, or its reply went to settle.
                let left = try await redis.integer("LLEN", "list")
                #expect(settled.all == (left == 1 ? [] : [.bytes(Array("element".utf8))]))
            }
        }

        @Test("a command behind a stalled one times out at its own deadline")
        func deadlineBehindStalled() async throws {
            try await withServer { server, redis in
                _ = try await redis.send("PING")
                try await server.pause()
                let first = Task { try await redis.send(["ECHO", "first"], timeout: .seconds(60)) }
                // On a busy machine the time may be up before the command is sent.
                try await until("the time is up after the command was sent") {
                    let second = await redisError {
                        _ = try await redis.send(["ECHO", "second"], timeout: .milliseconds(50))
                    }
                    #expect(second?.code == .timedOut)
                    return second?.mayHaveRun == true
                }
                try await server.resume()
                #expect(try await first.value.string == "first")
                #expect(try await redis.send("ECHO", "third").string == "third")
            }
        }

        @Test("commands wait for a server restart, and those in flight fail with mayHaveRun")
        func killAndRestart() async throws {
            try await withServer(.init(persistence: .appendOnly(fsync: .always))) { server, redis in
                _ = try await redis.send("SET", "k", "kept")
                try await server.pause()
                let started = Record<Bool>()
                let underWay = Task {
                    started.add(true)
                    return await redisError { _ = try await redis.send("INCR", "n") }
                }
                try await until("the command is sent") { started.count == 1 }
                // The command is in flight when its bytes are in the stopped server's socket, as another command shows.
                try await until("a later command is sent") {
                    let behind = await redisError { _ = try await redis.send(["PING"], timeout: .milliseconds(100)) }
                    #expect(behind?.code == .timedOut)
                    return behind?.mayHaveRun == true
                }
                await server.kill()
                let error = await underWay.value
                #expect(error?.code == .connectionLost)
                #expect(error?.mayHaveRun == true)
                let waiting = Task { try await redis.send(["GET", "k"], timeout: .seconds(60)) }
                try await server.restart()
                #expect(try await waiting.value.string == "kept")
            }
        }

        @Test("without a server a command times out with an error that names the address and the reason")
        func noServer() async throws {
            var configuration = RedisConfiguration(endpoint: .tcp(host: "127.0.0.1", port: 1))
            configuration.commandTimeout = .milliseconds(200)
            try await withRedisClient(configuration) { redis in
                // The reason is known after the first attempt to connect.
                try await until("the error names the address and the reason") {
                    let error = await redisError { _ = try await redis.send("PING") }
                    #expect(error?.code == .timedOut)
                    #expect(error?.mayHaveRun == false)
                    return error?.message.contains("127.0.0.1:1") == true && error?.message.contains("refused") == true
                }
            }
        }

        @Test("under repeated CLIENT KILL no command runs twice, and each failure has mayHaveRun")
        func clientKill() async throws {
            try await withServer { server, redis in
                let done = Record<Bool>()
                let unknown = Record<Bool>()
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 0..<20 {
                        group.addTask {
                            for _ in 0..<500 {
                                do throws(RedisError) {
                                    _ = try await redis.send("INCR", "n")
                                    done.add(true)
                                } catch {
                                    #expect(error.code == .connectionLost)
                                    #expect(error.mayHaveRun)
                                    unknown.add(true)
                                }
                            }
                        }
                    }
                    try await withTestClient(url: server.unixURL) { killer in
                        for _ in 0..<50 {
                            _ = try await killer.send("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
                            try await Task.sleep(for: .milliseconds(3))
                        }
                    }
                    try await group.waitForAll()
                }
                let count = try await redis.integer("GET", "n")
                let (sure, open) = (done.count, unknown.count)
                #expect(count >= sure && count <= sure + open)
                #expect(sure + open == 10_000)
            }
        }

        @Test("a command whose reply is lost fails and is not sent again")
        func lostReply() async throws {
            try await withProxiedServer { proxy, redis, direct in
                _ = try await redis.send("PING")
                for round in 1...20 {
                    await proxy.dropNextReply(matching: "INCR")
                    let error = await redisError { _ = try await redis.send("INCR", "n") }
                    #expect(error?.code == .connectionLost)
                    #expect(error?.mayHaveRun == true)
                    #expect(try await direct.integer("GET", "n") == round)
                }
            }
        }

        @Test("a command whose reply is truncated fails as lost")
        func cutReply() async throws {
            try await withProxiedServer { proxy, redis, _ in
                _ = try await redis.send("SET", "k", .bytes([UInt8](repeating: 65, count: 100_000)))
                await proxy.cutNextReply(afterBytes: 5000)
                let error = await redisError { _ = try await redis.send("GET", "k") }
                #expect(error?.code == .connectionLost)
                #expect(try await redis.send("GET", "k").bytes?.count == 100_000)
            }
        }

        private func untilConnected(_ redis: RedisClient) async throws {
            try await until("the client is connected") { await redisError { try await expectPong(redis) } == nil }
        }

        @Test("the client reconnects when a reply is outstanding and the server stays silent")
        func silence() async throws {
            try await withProxiedServer {
                $0.silenceLimit = .seconds(1)
            } _: { proxy, redis, _ in
                for _ in 1...3 {
                    // On a busy machine, a working connection may be silent for the limit too. It is replaced as well.
                    try await untilConnected(redis)
                    await proxy.silenceOpenConnections()
                    let error = await redisError { _ = try await redis.send(["PING"], timeout: patience) }
                    #expect(error?.code == .connectionLost)
                    #expect(error?.message.contains("owes a reply") == true)
                }
                try await untilConnected(redis)
            }
        }

        @Test("a connection survives a pause of the process beyond the silence limit")
        func pause() async throws {
            try await withLocalRedis { server in
                var configuration = try RedisConfiguration(url: server.url)
                configuration.silenceLimit = .seconds(1)
                let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
                let redis = try RedisClient(configuration, eventLoopGroup: group)
                let running = Task { await redis.run() }
                let script = RedisScript("return 1")
                _ = try await redis.script(script, keys: ["k"], arguments: [])
                // Again if a busy machine has stopped the server for as long.
                try await until("the connection survives") {
                    let connections = try await redis.info("total_connections_received")
                    let reply = await withCheckedContinuation { continuation in
                        redis.execute {
                            redis.post(script, keys: ["k"], arguments: [], timeout: patience) { reply in
                                continuation.resume(returning: reply)
                            }
                            // The reply arrives meanwhile. The overdue timer fires before the loop reads it.
                            Thread.sleep(forTimeInterval: 1.5)
                        }
                    }
                    guard (try? reply.get())?.integer == 1 else { return false }
                    return try await redis.info("total_connections_received") == connections
                }
                running.cancel()
                await running.value
                try await group.shutdownGracefully()
            }
        }

        @Test("a reply beyond the limit fails with .replyTooLarge, and the client continues to work")
        func tooLarge() async throws {
            try await withServer {
                $0.limits.replyBytes = 10_000
            } _: { _, redis in
                _ = try await redis.send("SET", "k", .bytes([UInt8](repeating: 1, count: 20_000)))
                let error = await redisError { _ = try await redis.send("GET", "k") }
                #expect(error?.code == .replyTooLarge)
                try await expectPong(redis)
            }
        }

        @Test("shutting the client down fails commands in flight and refuses new ones")
        func stop() async throws {
            try await withLocalRedis { server in
                let redis = try RedisClient(url: server.url)
                let running = Task { await redis.run() }
                _ = try await redis.send("PING")
                try await server.pause()
                let underWay = Task { await redisError { _ = try await redis.send("PING") } }
                _ = await redisError { _ = try await redis.send(["PING"], timeout: .milliseconds(50)) }
                running.cancel()
                #expect(await underWay.value?.code == .clientStopped)
                await running.value
                let late = await redisError { _ = try await redis.send("PING") }
                #expect(late?.code == .clientStopped)
                try await server.resume()
            }
        }
    }
}
