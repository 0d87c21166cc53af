import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import HiredisTestSupport

#if ServiceLifecycleSupport
    import ServiceLifecycle
    import ServiceLifecycleTestKit
#endif
#if LoggingSupport
    import Logging
#endif

extension ServerTests {
    @Suite("Shutdown of the client", .serialized, .timeLimit(.minutes(10)))
    struct ShutdownTests {
        #if ServiceLifecycleSupport
            /// Runs a body with a client behind a proxy, its `run()`, and a function that starts its graceful shutdown.
            ///
            /// - Parameter refusing: whether the proxy refuses connections from the start.
            private func withRunning(
                refusing: Bool = false, configure: (inout RedisConfiguration) -> Void = { _ in },
                _ body: (
                    _ proxy: FaultProxy, _ redis: RedisClient, _ direct: RedisClient, _ running: Task<Void, Never>,
                    _ trigger: GracefulShutdownTestTrigger
                ) async throws -> Void
            ) async throws {
                try await withServer { server, direct in
                    try await withFaultProxy(to: .port(server.port)) { proxy in
                        await proxy.refuse(refusing)
                        var configuration = RedisConfiguration(endpoint: .tcp(host: "127.0.0.1", port: proxy.port))
                        configuration.commandTimeout = patience
                        configure(&configuration)
                        let redis = try RedisClient(configuration)
                        // The task inherits the task-local graceful shutdown manager.
                        let (running, trigger) = await testGracefulShutdown { trigger in
                            (Task { await redis.run() }, trigger)
                        }
                        try await body(proxy, redis, direct, running, trigger)
                        await running.value
                    }
                }
            }

            /// Waits until a client refuses commands.
            private func untilRefused(_ redis: RedisClient) async throws {
                try await until("commands are refused") {
                    let error = await redisError { _ = try await redis.send(["PING"], timeout: .milliseconds(20)) }
                    return error?.code == .clientStopped && error?.mayHaveRun == false
                }
            }

            @Test(
                "in a graceful shutdown, commands in flight get replies, new ones are refused, and run returns"
            )
            func answered() async throws {
                try await withRunning { proxy, redis, direct, running, trigger in
                    try await expectPong(redis)
                    await proxy.stall(.toClient)
                    let command = Task { try await redis.send("INCR", "n") }
                    let pipeline = Task { try await redis.pipeline([["INCR", "m"], ["INCR", "m"]]) }
                    try await until("both have run") {
                        try await direct.integer("EXISTS", "n", "m") == 2
                    }
                    trigger.triggerGracefulShutdown()
                    try await untilRefused(redis)
                    await proxy.heal()
                    #expect(try await command.value == .integer(1))
                    #expect(try await pipeline.value == [.integer(1), .integer(2)])
                    await running.value
                    #expect(await redisError { _ = try await redis.send("PING") }?.code == .clientStopped)
                    try await until("its connections are closed") { try await direct.info("connected_clients") == "1" }
                }
            }

            @Test("a shutdown ends a blocked wait, which takes no element")
            func blocked() async throws {
                try await withRunning { _, redis, direct, running, trigger in
                    let waits = (0..<10).map { _ in
                        Task { await redisError { _ = try await redis.block(.brpop("list"), timeout: nil) { _ in } } }
                    }
                    try await until("all wait") { try await direct.blockedClients() == 10 }
                    trigger.triggerGracefulShutdown()
                    for wait in waits { #expect(await wait.value?.code == .clientStopped) }
                    await running.value
                    _ = try await direct.send("LPUSH", "list", "x")
                    #expect(try await direct.integer("LLEN", "list") == 1)
                    #expect(
                        await redisError { _ = try await redis.block(.brpop("list"), timeout: nil) { _ in } }?.code
                            == .clientStopped)
                }
            }

            @Test("an element that a blocked wait has taken is given back before the shutdown closes the connection")
            func givesBack() async throws {
                for _ in 0..<20 {
                    try await withRunning {
                        $0.settleTimeout = patience
                    } _: { proxy, redis, direct, running, trigger in
                        let wait = Task {
                            await redisError {
                                _ = try await redis.block(.brpop("list"), timeout: nil) { late in
                                    // In several steps, which the shutdown must wait for.
                                    _ = try? await redis.send("PING")
                                    _ = try? await redis.send("RPUSH", "list", .bytes(late.array?.last?.bytes ?? []))
                                }
                            }
                        }
                        try await until("the command waits") { try await direct.blockedClients() == 1 }
                        // The interruption uses the command connection, which could not log in later.
                        try await expectPong(redis)
                        await proxy.stall(.toClient)
                        _ = try await direct.send("LPUSH", "list", "x")
                        try await until("the element is delivered") { try await direct.blockedClients() == 0 }
                        let asked = try await direct.calls(of: "client|unblock")
                        trigger.triggerGracefulShutdown()
                        try await until("it is interrupted") { try await direct.calls(of: "client|unblock") > asked }
                        await proxy.heal()
                        #expect(await wait.value?.code == .clientStopped)
                        await running.value
                        #expect(try await direct.send("LRANGE", "list", 0, -1) == .array([.bytes(Array("x".utf8))]))
                    }
                }
            }

            @Test("a shutdown ends a subscription after its buffered events")
            func subscription() async throws {
                try await withRunning { _, redis, direct, running, trigger in
                    let events = try await redis.subscribe(to: ["a"])
                    let reading = try await redis.subscribe(to: ["a"])
                    _ = try await direct.publish("x", to: "a")
                    #expect(try await reading.texts(1) == ["x"])
                    let reader = Task { await redisError { _ = try await reading.next() } }
                    trigger.triggerGracefulShutdown()
                    await running.value
                    #expect(await reader.value?.code == .clientStopped)
                    #expect(try await events.texts(1) == ["x"])
                    #expect(await redisError { _ = try await events.next() }?.code == .clientStopped)
                    try await until("nothing is subscribed") { try await direct.activeChannels().isEmpty }
                }
            }

            @Test("a client that never reached a server shuts down, and commands that wait for a connection fail")
            func neverConnected() async throws {
                try await withRunning(refusing: true) { proxy, redis, _, running, trigger in
                    let waiting = Task {
                        await redisError { _ = try await redis.send(["PING"], timeout: .seconds(60)) }
                    }
                    let subscribing = Task { await redisError { _ = try await redis.subscribe(to: ["a"]) } }
                    try await proxy.waitUntil { $0.refusedConnections > 3 }
                    trigger.triggerGracefulShutdown()
                    await running.value
                    #expect(await waiting.value?.code == .clientStopped)
                    #expect(await subscribing.value?.code == .clientStopped)
                }
            }

            @Test("a client without run() refuses commands with a hint")
            func neverRan() async throws {
                let redis = try RedisClient(url: "redis://127.0.0.1:1")
                let error = await redisError { _ = try await redis.send(["PING"], timeout: .milliseconds(10)) }
                #expect(error?.code == .timedOut)
                #expect(error?.message.contains("run()") == true)
            }

            #if LoggingSupport
                @Test("a client runs as a service of a ServiceGroup")
                func serviceGroup() async throws {
                    try await withLocalRedis { server in
                        let redis = try RedisClient(url: server.url)
                        let logger = Logger(label: "group") { _ in SwiftLogNoOpLogHandler() }
                        let group = ServiceGroup(services: [redis], logger: logger)
                        let running = Task { try await group.run() }
                        try await expectPong(redis)
                        await group.triggerGracefulShutdown()
                        // A service that returned before the shutdown would end the group with an error.
                        try await running.value
                        #expect(await redisError { _ = try await redis.send("PING") }?.code == .clientStopped)
                    }
                }
            #endif
        #endif

        @Test("a cancelled run fails commands in flight, interrupts blocked waits, and returns")
        func cancelled() async throws {
            try await withServer { server, direct in
                let redis = try RedisClient(url: server.url)
                let running = Task { await redis.run() }
                let wait = Task {
                    await redisError { _ = try await redis.block(.brpop("list"), timeout: nil) { _ in } }
                }
                try await until("the command waits") { try await direct.blockedClients() == 1 }
                running.cancel()
                await running.value
                #expect(await wait.value?.code == .clientStopped)
                try await until("the connections are closed") { try await direct.info("connected_clients") == "1" }
                _ = try await direct.send("LPUSH", "list", "x")
                #expect(try await direct.integer("LLEN", "list") == 1)
            }
        }

        #if compiler(>=6.2) && (os(Linux) || os(macOS))
            @Test("a second call of run is a programming error and traps")
            func twice() async throws {
                await #expect(processExitsWith: .failure) {
                    let redis = try RedisClient(url: "redis://127.0.0.1:1")
                    let first = Task { await redis.run() }
                    first.cancel()
                    await first.value
                    await redis.run()
                }
            }
        #endif
    }
}
