// Subscriptions that are refused or cancelled, or that end with the client.
import Hiredis
import RedisDCTesting
import TestRandom
import TestSupport
import Testing

@testable import HiredisTestSupport

extension ServerTests.SubscriptionFailureTests {
    private func withWorker(
        _ body: (_ worker: RedisClient, _ admin: RedisClient) async throws -> Void
    ) async throws {
        try await withServer(.init(aclUsers: ["worker on >pw ~* +@all resetchannels &ok:* &may:*"])) {
            server, admin in
            var configuration = RedisConfiguration(endpoint: .tcp(host: "127.0.0.1", port: server.port))
            configuration.credentials = .init(username: "worker", password: "pw")
            configuration.reconnectDelay = Self.soon
            configuration.commandTimeout = patience
            try await withRedisClient(configuration) { worker in try await body(worker, admin) }
        }
    }

    @Test("a forbidden channel fails only its own call, and the call leaves no topic subscribed")
    func notPermitted() async throws {
        try await withWorker { worker, admin in
            let earlier = try await worker.subscribe(to: ["ok:0"])
            async let good1 = worker.subscribe(to: ["ok:1", "ok:2"])
            async let bad = redisError { _ = try await worker.subscribe(to: ["ok:3", "secret", "ok:4"]) }
            async let good2 = worker.subscribe(to: ["ok:5", "may:1"])
            let later = [try await good1, try await good2]
            #expect(await bad?.code == .notPermitted)
            let refusedToo = await redisError { try await earlier.subscribe(to: ["ok:6", "secret"]) }
            #expect(refusedToo?.code == .notPermitted)
            try await until("only what was asked for is subscribed") {
                try await admin.activeChannels() == ["may:1", "ok:0", "ok:1", "ok:2", "ok:5"]
            }
            for (events, channel) in zip([earlier] + later, ["ok:0", "ok:2", "ok:5"]) {
                #expect(try await admin.publish(.string(channel), to: .channel(channel)) == 1)
                #expect(try await events.texts(1) == [channel])
            }
        }
    }

    @Test("a revoked permission ends only the subscriptions that need it")
    func rightTakenAway() async throws {
        try await withWorker { worker, admin in
            let good = try await worker.subscribe(to: (0..<50).map { .channel("ok:\($0)") })
            let bad = try await worker.subscribe(to: ["may:1", "ok:0"])
            let alsoGood = try await worker.subscribe(to: ["ok:0"])
            _ = try await admin.publish("x", to: "may:1")
            // The server closes the connection, and then refuses the command that subscribes all topics again.
            _ = try await admin.send("ACL", "SETUSER", "worker", "resetchannels", "&ok:*")
            #expect(try await good.next() == .gap(.reconnected))
            #expect(try await alsoGood.next() == .gap(.reconnected))
            #expect(try await bad.texts(1) == ["x"])
            let error = await redisError {
                while let event = try await bad.next() { #expect(event == .gap(.reconnected)) }
            }
            #expect(error?.code == .notPermitted)
            #expect(try await admin.publish("y", to: "ok:0") == 1)
            #expect(try await good.texts(1) == ["y"])
            #expect(try await alsoGood.texts(1) == ["y"])
            #expect(try await admin.activeChannels().count == 50)
        }
    }

    @Test("a subscribe that is cancelled at any time leaves no topic subscribed")
    func cancelledSubscribe() async throws {
        try await withServer { _, redis in
            let other = try await redis.subscribe(to: ["other"])
            var generator = SplitMix(seed: testSeed(default: 7))
            var cancelled = 0
            for round in 0..<500 {
                let subscribing = Task { try await redis.subscribe(to: ["c:\(round)", "other"]) }
                let pause = Int.random(in: 0...400, using: &generator)
                if pause > 100 { try await Task.sleep(for: .microseconds(pause)) }
                subscribing.cancel()
                do { _ = try await subscribing.value } catch let error as RedisError {
                    #expect(error.code == .cancelled)
                    cancelled += 1
                }
            }
            #expect(cancelled > 0)
            try await until("nothing else is subscribed") { try await redis.activeChannels() == ["other"] }
            _ = try await redis.publish("x", to: "other")
            #expect(try await other.texts(1) == ["x"])
        }
    }

    @Test("an unanswered subscribe is cancelled immediately, and undone when the server replies")
    func cancelledUnanswered() async throws {
        try await withServer { server, redis in
            let other = try await redis.subscribe(to: ["other"])
            try await server.pause()
            let unconfirmed = await redisError {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for name in ["a", "b"] { group.addTask { _ = try await redis.subscribe(to: [.channel(name)]) } }
                    group.cancelAll()
                    try await group.waitForAll()
                }
            }
            #expect(unconfirmed?.code == .cancelled)
            try await server.resume()
            // The server confirms this after all earlier commands.
            try await other.subscribe(to: ["mark"])
            #expect(try await redis.activeChannels() == ["mark", "other"])
        }
    }

    @Test("ending a subscription immediately fails a call that adds topics")
    func endsWhileJoining() async throws {
        try await withServer { server, redis in
            let events = try await redis.subscribe(to: ["a"])
            try await server.pause()
            let joining = Task { await redisError { try await events.subscribe(to: ["b"]) } }
            // After the first call waits, a second call that is cancelled returns before it.
            for _ in 0..<20 {
                let second = Task { try await events.subscribe(to: ["b"]) }
                second.cancel()
                _ = await second.result
            }
            events.cancel()
            #expect(await joining.value?.code == .cancelled)
            try await server.resume()
            try await until("nothing is subscribed") { try await redis.activeChannels().isEmpty }
        }
    }

    @Test("without a server subscribe times out with an error that names the reason")
    func noServer() async throws {
        var configuration = RedisConfiguration(endpoint: .tcp(host: "127.0.0.1", port: 1))
        configuration.commandTimeout = .milliseconds(200)
        try await withRedisClient(configuration) { redis in
            // The reason is known after the first attempt to connect.
            try await until("the error names the address and the reason") {
                let error = await redisError { _ = try await redis.subscribe(to: ["a"]) }
                #expect(error?.code == .timedOut)
                return error?.message.contains("127.0.0.1:1") == true && error?.message.contains("refused") == true
            }
        }
    }

    @Test("a client that stops ends its subscriptions with .clientStopped and refuses new ones")
    func stopped() async throws {
        try await withServer { server, _ in
            let redis = try RedisClient(url: server.url)
            let running = Task { await redis.run() }
            let idle = try await redis.subscribe(to: ["a"])
            let read = try await redis.subscribe(to: ["b"])
            let reader = Task { await redisError { while try await read.next() != nil {} } }
            _ = try await redis.publish("x", to: "b")
            _ = try await redis.publish("gathered", to: "a")
            let mark = try await redis.subscribe(to: ["mark"])
            running.cancel()
            await running.value
            #expect(await reader.value?.code == .clientStopped)
            #expect(try await idle.texts(1) == ["gathered"])
            #expect(await redisError { _ = try await idle.next() }?.code == .clientStopped)
            #expect(await redisError { try await mark.subscribe(to: ["more"]) }?.code == .clientStopped)
            #expect(await redisError { _ = try await redis.subscribe(to: ["c"]) }?.code == .clientStopped)
        }
    }
}
