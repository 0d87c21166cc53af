#if LoggingSupport
    import CoordinationBase
    import Hiredis
    import Logging
    import RedisDCTesting
    import TestSupport
    import Testing

    @testable import RedisDC
    @testable import RedisDCTestSupport

    extension EngineTests {
        /// Time is a manual clock's, so that a test takes none of the seconds that a wait is long.
        @Suite("Long waits", .serialized)
        struct LongWaitTests {
            private let log = CapturedLog()

            private var configuration: CoordinatorConfiguration {
                var configuration = longTTL
                // Time passes much faster than replies come.
                configuration.ttl = .seconds(86_400)
                configuration.instruments.logger = Logger(label: "test") { [log] _ in log }
                return configuration
            }

            /// Locks the mutex without a timeout until it is logged at a level.
            ///
            /// - Returns: the line of the log.
            private func lineOfWait(
                _ level: Logger.Level, _ coordinator: Coordinator, _ time: ManualClock, isRun: Bool = true
            ) async throws -> CapturedLog.Line {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    if isRun { group.addTask { await coordinator.run() } }
                    group.addTask { try? await coordinator.mutex("kitchen").withLock {} }
                    defer { group.cancelAll() }
                    var line: CapturedLog.Line?
                    try await until("it is logged") {
                        time.advance(by: .seconds(1))
                        line = log.lines.first { $0.level == level && $0.metadata["redisdc_wait"] != nil }
                        return line != nil
                    }
                    return try #require(line)
                }
            }

            private func coordinator(_ redis: RedisClient, _ time: ManualClock) throws -> Coordinator {
                try Coordinator(redis: redis, namespace: "default", configuration: configuration, clock: time.clock)
            }

            @Test("a wait without a timeout says that nobody runs the coordinator")
            func notRun() async throws {
                try await withServer { _, redis, _ in
                    let time = ManualClock()
                    let line = try await lineOfWait(.warning, coordinator(redis, time), time, isRun: false)
                    #expect(line.metadata["redisdc_wait"] == "acquire mutex \"kitchen\"")
                    #expect(line.metadata["redisdc_reason"]?.contains("nobody runs the coordinator") == true)
                }
            }

            @Test(
                "a wait without a timeout says why there is no connection",
                arguments: [("redis://127.0.0.1:1", "refused"), ("database", "out of range")])
            func noConnection(url: String, reason: String) async throws {
                try await withServer { server, _, _ in
                    let url = url == "database" ? server.url + "/99" : url
                    try await withTestClient(url: url) { redis in
                        try await until("an attempt has failed") {
                            redis.connectionFailure?.message.contains(reason) == true
                        }
                        let time = ManualClock()
                        let line = try await lineOfWait(.warning, coordinator(redis, time), time)
                        let text = line.metadata["redisdc_reason"] ?? ""
                        #expect(text.contains("no connection to Redis") && text.contains(reason), "\(text)")
                    }
                }
            }

            @Test("a wait without a timeout says that others hold the mutex, and one with a timeout says nothing")
            func held() async throws {
                try await withServer { _, redis, other in
                    try await withCoordinator(redis: other, configuration: longTTL) { holder in
                        try await holder.mutex("kitchen").withLock {
                            let time = ManualClock()
                            let coordinator = try coordinator(redis, time)
                            let patient = Task {
                                await errorOf {
                                    try await coordinator.mutex("other").withLock(timeout: .seconds(900)) {}
                                }
                            }
                            // Until Redis has queued the wait, that is its reason.
                            let line = try await lineOfWait(.info, coordinator, time)
                            #expect(line.metadata["redisdc_reason"]?.contains("others hold it") == true)
                            #expect(!log.lines.contains { $0.metadata["redisdc_wait"]?.contains("other") == true })
                            patient.cancel()
                            _ = await patient.value
                        }
                    }
                }
            }

            @Test("the error of a timeout names a coordinator that nobody runs")
            func timeoutNamesIt() async throws {
                try await withServer { _, redis, _ in
                    let coordinator = try Coordinator(redis: redis)
                    let error = await errorOf {
                        try await coordinator.mutex("kitchen").withLock(timeout: .milliseconds(10)) {}
                    }
                    #expect(error?.code == .timedOut)
                    #expect(error?.message.contains("nobody runs the coordinator: call its run()") == true)
                    let local = try coordinator.mutex("kitchen", locality: .cohort())
                    let other = await errorOf { try await local.withLock(timeout: .milliseconds(10)) {} }
                    #expect(other?.message.contains("nobody runs the coordinator") == true)
                }
            }
        }
    }
#endif
