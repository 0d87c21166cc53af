#if LoggingSupport && MetricsSupport && TracingSupport
    import Hiredis
    import InMemoryTracing
    import Logging
    import MetricsTestKit
    import RedisDCTesting
    import TestSupport
    import Testing
    import Tracing

    @testable import HiredisTestSupport

    extension ServerTests {
        @Suite("Logs, metrics and spans", .serialized, .timeLimit(.minutes(10)))
        struct InstrumentationTests {
            private static let soon: ClosedRange<Duration> = .milliseconds(1)...(.milliseconds(20))

            private func withCapture(
                configure: (inout RedisConfiguration) -> Void = { _ in },
                _ body: (Capture, LocalRedis, RedisClient) async throws -> Void
            ) async throws {
                let capture = Capture()
                try await withServer {
                    $0.instruments = capture.instruments
                    $0.reconnectDelay = Self.soon
                    configure(&$0)
                } _: { server, redis in
                    try await body(capture, server, redis)
                }
            }

            /// Lets the client kill its own command connection, and waits until it has reconnected.
            private func reconnect(_ redis: RedisClient) async throws {
                _ = try await redis.send("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no")
                // Commands that are sent before the client notices the loss fail.
                try await until("it has reconnected") { await redisError { try await expectPong(redis) } == nil }
            }

            // MARK: Defaults

            /// The system of this process. Other tests log there too.
            private static let bootstrapped: CapturedLog = {
                let log = CapturedLog()
                LoggingSystem.bootstrap { _ in log }
                return log
            }()

            @Test("logs go to the system that the process has bootstrapped, and nil switches them off")
            func bootstrapped() async throws {
                let log = Self.bootstrapped
                let path = "/tmp/nobody-\(UInt64.random(in: 0 ..< .max)).sock"
                var silent = RedisConfiguration(endpoint: .unixSocket(path: path + "2"))
                silent.instruments.logger = nil
                var logged = RedisConfiguration(endpoint: .unixSocket(path: path))
                (silent.reconnectDelay, logged.reconnectDelay) = (Self.soon, Self.soon)
                try await withRedisClient(silent) { _ in
                    try await withRedisClient(logged) { _ in
                        // The second attempt comes after the first of the other client, which began earlier.
                        try await until("two attempts are logged") {
                            log.lines.count { $0.metadata["redis_error"]?.contains(path + ":") == true } >= 2
                        }
                    }
                }
                #expect(!log.lines.contains { $0.metadata["redis_error"]?.contains(path + "2") == true })
            }

            @Test("what is disabled or bootstrapped as a backend that does nothing is not called")
            func disabled() {
                #expect(Backends(.disabled).logger == nil)
                #expect(Backends(.disabled).isDisabled)
                var quiet = RedisInstruments()
                quiet.logger = Logger(label: "quiet") { _ in SwiftLogNoOpLogHandler() }
                (quiet.metrics, quiet.tracer) = (nil, nil)
                #expect(Backends(quiet).logger == nil && Backends(quiet).isDisabled)
                #expect(Backends(RedisInstruments()).logger != nil)
            }

            // MARK: Metrics

            @Test("each command is counted, including those of a pipeline, and each exchange is timed once")
            func commands() async throws {
                try await withCapture { capture, _, redis in
                    for _ in 0..<3 { try await expectPong(redis) }
                    #expect(capture.count("redis_commands") == 3)
                    #expect(capture.durations().count == 3)
                    _ = try await redis.pipeline([["SET", "s", "x"], ["GET", "s"], ["LPUSH", "s", "y"]])
                    #expect(capture.count("redis_commands") == 6)
                    _ = try await redis.transaction([["SET", "a", 1], ["INCR", "a"]])
                    #expect(capture.count("redis_commands") == 8)
                    _ = try await redis.script(RedisScript("return 1"), keys: [])
                    _ = try await redis.publish("x", to: "nobody")
                    _ = try await redis.send("LPUSH", "list", "x")
                    #expect(try await redis.block(.brpop("list"), timeout: nil) { _ in } != nil)
                    #expect(capture.count("redis_commands") == 12)
                    #expect(capture.durations().count == 9)
                    #expect(capture.durations().allSatisfy { $0 > 0 })
                    #expect(capture.count("redis_command_failures") == 0)
                }
            }

            @Test("error replies, timeouts and cancellations count as failures; errors inside a pipeline do not")
            func failures() async throws {
                try await withCapture { capture, server, redis in
                    _ = try await redis.send("SET", "s", "x")
                    _ = try await redis.pipeline([["LPUSH", "s", "y"], ["PING"]])
                    #expect(capture.count("redis_command_failures") == 0)
                    _ = await redisError { _ = try await redis.send("LPUSH", "s", "y") }
                    #expect(capture.count("redis_command_failures") == 1)
                    _ = await redisError { _ = try await redis.transaction([["NOSUCH"]]) }
                    #expect(capture.count("redis_command_failures") == 2)
                    let blocked = Task { try await redis.block(.brpop("list"), timeout: nil) { _ in } }
                    blocked.cancel()
                    _ = await blocked.result
                    #expect(capture.count("redis_command_failures") == 3)
                    try await server.pause()
                    _ = await redisError { _ = try await redis.send(["PING"], timeout: .milliseconds(10)) }
                    try await server.resume()
                    #expect(capture.count("redis_command_failures") == 4)
                    #expect(capture.durations().count == 6)
                }
            }

            @Test("reconnects are counted per kind of connection, and gaps per subscriber")
            func reconnects() async throws {
                try await withCapture { capture, _, redis in
                    let (command, subscription) = ([("connection", "command")], [("connection", "subscription")])
                    let all = [try await redis.subscribe(to: ["a"]), try await redis.subscribe(to: ["a", "b"])]
                    #expect(capture.count("redis_reconnects", command) == 0)
                    try await redis.killSubscriptions()
                    for events in all { #expect(try await events.next() == .gap(.reconnected)) }
                    #expect(capture.count("redis_reconnects", subscription) == 1)
                    #expect(capture.count("redis_subscription_gaps") == 2)
                    #expect(capture.count("redis_reconnects", command) == 0)
                    try await reconnect(redis)
                    #expect(capture.count("redis_reconnects", command) == 1)
                    #expect(capture.count("redis_reconnects", subscription) == 1)
                }
            }

            @Test("the gauge of lanes shows the number in use and returns to 0")
            func lanes() async throws {
                try await withCapture { capture, _, redis in
                    let waits = (0..<3).map { _ in Task { try await redis.block(.brpop("list"), timeout: nil) { _ in } }
                    }
                    try await until("all wait") { try await redis.blockedClients() == 3 }
                    #expect(capture.lanes().max() == 3)
                    _ = try await redis.send("LPUSH", "list", 1, 2, 3)
                    for wait in waits { _ = try await wait.value }
                    #expect(capture.lanes().last == 0)
                }
            }

            // MARK: Spans

            @Test("each command has a span with the attributes of OpenTelemetry's database conventions")
            func spans() async throws {
                try await withCapture {
                    $0.database = 3
                } _: { capture, server, redis in
                    _ = try await redis.send("set", "s", "x")
                    _ = try await redis.pipeline([["GET", "s"], ["PING"]])
                    _ = try await redis.pipeline([["PING"]])
                    _ = try await redis.transaction([["INCR", "a"], ["INCR", "a"], ["INCR", "a"]])
                    _ = try await redis.script(RedisScript("return 1"), keys: [])
                    _ = try await redis.publish("x", to: "c")
                    #expect(try await redis.block(.brpop("list"), timeout: .milliseconds(1)) { _ in } == nil)
                    let spans = capture.tracer.finishedSpans
                    let names = ["SET", "PIPELINE", "PIPELINE", "MULTI", "EVALSHA", "PUBLISH", "BRPOP"]
                    #expect(spans.map(\.operationName) == names)
                    #expect(spans.map { $0["db.operation.name"] } == names)
                    #expect(spans.map { $0["db.operation.batch.size"] } == [nil, "2", nil, "3", nil, nil, nil])
                    for span in spans {
                        #expect(span.kind == .client)
                        #expect(span["db.system.name"] == "redis")
                        #expect(span["db.namespace"] == "3")
                        #expect(span["server.address"] == "127.0.0.1")
                        #expect(span["server.port"] == "\(server.port)")
                        #expect(
                            span["error.type"] == nil && span["db.response.status_code"] == nil && span.status == nil)
                    }
                    #expect(capture.tracer.activeSpans.isEmpty)
                }
            }

            @Test("on a Unix socket the address attribute is its path, and there is no port")
            func unixSocket() async throws {
                let capture = Capture()
                try await withLocalRedis { server in
                    var configuration = try RedisConfiguration(url: server.unixURL)
                    configuration.instruments = capture.instruments
                    try await withRedisClient(configuration) { try await expectPong($0) }
                    let span = try #require(capture.tracer.finishedSpans.first)
                    #expect(span["server.address"] == server.socketPath)
                    #expect(span["server.port"] == nil)
                }
            }

            @Test("a span is the child of the caller's span")
            func parent() async throws {
                try await withCapture { capture, _, redis in
                    try await capture.tracer.withSpan("outer") { _ in try await expectPong(redis) }
                    let spans = capture.tracer.finishedSpans
                    #expect(spans.map(\.operationName) == ["PING", "outer"])
                    #expect(spans[0].parentSpanID == spans[1].spanID)
                }
            }

            @Test("a failed span has the kind of failure and, for a server error, its prefix")
            func failedSpans() async throws {
                try await withCapture { capture, server, redis in
                    _ = try await redis.send("SET", "s", "x")
                    let failing = RedisScript("return redis.error_reply('MINE oh no')")
                    _ = await redisError { _ = try await redis.send("LPUSH", "s", "y") }
                    _ = await redisError { _ = try await redis.send("NOSUCH") }
                    _ = await redisError { _ = try await redis.script(failing, keys: []) }
                    try await server.pause()
                    _ = await redisError { _ = try await redis.send(["PING"], timeout: .milliseconds(10)) }
                    try await server.resume()
                    let spans = capture.tracer.finishedSpans
                    #expect(
                        spans.map { $0["error.type"] } == [nil, "wrongType", "serverError", "serverError", "timedOut"])
                    #expect(spans.map { $0["db.response.status_code"] } == [nil, "WRONGTYPE", "ERR", "MINE", nil])
                    #expect(spans.map { $0.status?.code == .error } == [false, true, true, true, true])
                }
            }

            // MARK: Logs

            @Test("a reconnect is logged at info and a failed attempt at warning, with the client's own metadata keys")
            func logs() async throws {
                try await withCapture { capture, server, redis in
                    try await expectPong(redis)
                    #expect(capture.log.lines.isEmpty)
                    await server.kill()
                    // An attempt during the server's exit may fail in another way.
                    let isRefusal = { (line: CapturedLog.Line) in
                        line.level == .warning && line.metadata["redis_error"]?.contains("refused") == true
                    }
                    try await until("an attempt was refused") { capture.log.lines.contains(where: isRefusal) }
                    try await server.restart()
                    try await expectPong(redis)
                    let lines = capture.log.lines
                    let ended = try #require(lines.first)
                    #expect(ended.level == .info && ended.metadata == ["redis_connection": "command"])
                    let warning = try #require(lines.first(where: isRefusal))
                    #expect(warning.metadata["redis_connection"] == "command")
                    let last = try #require(lines.last)
                    #expect(last.level == .info && last.message.contains("reconnected"))
                    #expect(lines.allSatisfy { $0.metadata.keys.allSatisfy { $0.hasPrefix("redis_") } })
                }
            }

            @Test("a returned element is logged, and a silent subscription connection is logged at warning")
            func moreLogs() async throws {
                let capture = Capture()
                try await withProxiedServer {
                    $0.instruments = capture.instruments
                    $0.probeInterval = .milliseconds(500)
                    $0.reconnectDelay = Self.soon
                    $0.settleTimeout = patience
                } _: { proxy, redis, direct in
                    let wait = Task { try await redis.block(.brpop("list"), timeout: nil) { _ in } }
                    try await until("the command waits") { try await direct.blockedClients() == 1 }
                    // The interruption uses the command connection, which could not log in later.
                    try await expectPong(redis)
                    await proxy.stall(.toClient)
                    _ = try await direct.send("LPUSH", "list", "x")
                    let asked = try await direct.calls(of: "client|unblock")
                    wait.cancel()
                    try await until("it is interrupted") { try await direct.calls(of: "client|unblock") > asked }
                    await proxy.heal()
                    _ = await wait.result
                    let line = try #require(capture.log.lines.first { $0.message.contains("gave back") })
                    #expect(line.level == .debug && line.metadata == ["redis_command": "BRPOP"])

                    let events = try await redis.subscribe(to: ["a"])
                    await proxy.stall()
                    try await until("it is detected") { capture.log.lines.contains { $0.message.contains("silent") } }
                    await proxy.heal()
                    #expect(try await events.next() == .gap(.reconnected))
                }
            }

            @Test("an orderly end of the client is not logged")
            func quietEnd() async throws {
                let capture = Capture()
                try await withLocalRedis { server in
                    for subscribes in [false, true] {
                        var configuration = try RedisConfiguration(url: server.url)
                        configuration.instruments = capture.instruments
                        try await withRedisClient(configuration) { redis in
                            if subscribes {
                                _ = try await redis.subscribe(to: ["a"])
                            } else {
                                try await expectPong(redis)
                            }
                        }
                    }
                }
                #expect(capture.log.lines.map(\.message) == [])
            }

            // MARK: Secrets

            @Test("no log line, dimension, attribute or error contains a key, value, channel, script or password")
            func secrets() async throws {
                let capture = Capture()
                let (password, wrongPassword) = ("pw-SECRET-1", "pw-SECRET-2")
                try await withServer(.init(password: password)) {
                    $0.instruments = capture.instruments
                    $0.reconnectDelay = Self.soon
                } _: { _, redis in
                    try await useSecrets(redis)
                    var configuration = redis.configuration
                    configuration.credentials = .init(password: wrongPassword)
                    try await withRedisClient(configuration) { stranger in
                        let error = await redisError { _ = try await stranger.send("GET", "key-SECRET") }
                        #expect(error?.code == .authenticationFailed)
                    }
                }
                // The capture is not empty.
                #expect(capture.log.lines.count > 3 && capture.tracer.finishedSpans.count > 10)
                let texts = capture.allText
                #expect(texts.contains { $0.contains("redis_commands") })
                #expect(texts.filter { $0.contains("SECRET") } == [])
            }

            private func useSecrets(_ redis: RedisClient) async throws {
                _ = try await redis.send("SET", "key-SECRET", "value-SECRET")
                _ = try await redis.pipeline([["GET", "key-SECRET"], ["NOSUCH", "key-SECRET"]])
                _ = try await redis.publish("payload-SECRET", to: "channel-SECRET")
                var errors: [RedisError?] = []
                errors.append(await redisError { _ = try await redis.send("LPUSH", "key-SECRET", "value-SECRET") })
                errors.append(await redisError { _ = try await redis.send("NOSUCH", "key-SECRET", "value-SECRET") })
                errors.append(
                    await redisError { _ = try await redis.transaction([["NOSUCH", "key-SECRET"], ["PING"]]) })
                errors.append(
                    await redisError { _ = try await redis.block(.brpop("key-SECRET"), timeout: nil) { _ in } })
                for error in errors { #expect("\(String(describing: error))".contains("SECRET") == false) }
                #expect(errors.allSatisfy { $0 != nil })
                // The error text of a script is for the caller, not for the log.
                let script = RedisScript("return redis.error_reply('BAD ' .. KEYS[1] .. ARGV[1])")
                let said = await redisError {
                    _ = try await redis.script(script, keys: ["key-SECRET"], arguments: ["value-SECRET"])
                }
                #expect(said?.message == "BAD key-SECRETvalue-SECRET")
                let events = try await redis.subscribe(to: ["channel-SECRET", .pattern("pattern-SECRET*")])
                try await redis.killSubscriptions()
                #expect(try await events.next() == .gap(.reconnected))
                try await reconnect(redis)
            }

            @Test("the client does not repeat the password that a server without AUTH quotes")
            func passwordQuotedByServer() async throws {
                let capture = Capture()
                try await withLocalRedis(.init(extra: ["rename-command AUTH \"\""])) { server in
                    var configuration = RedisConfiguration(endpoint: .tcp(host: "127.0.0.1", port: server.port))
                    configuration.credentials = .init(username: "user", password: "pw-SECRET")
                    configuration.instruments = capture.instruments
                    try await withRedisClient(configuration) { redis in
                        let error = await redisError { _ = try await redis.send("PING") }
                        #expect(error?.code == .authenticationFailed)
                        #expect("\(String(describing: error)) \(error?.message ?? "")".contains("SECRET") == false)
                        #expect(error?.message.contains("AUTH") == true)
                    }
                }
                #expect(capture.allText.filter { $0.contains("SECRET") } == [])
            }
        }
    }
#endif
