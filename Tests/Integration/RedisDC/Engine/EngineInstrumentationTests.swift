#if MetricsSupport && TracingSupport
    import Hiredis
    import InMemoryTracing
    import Metrics
    import MetricsTestKit
    import RedisDC
    import TestSupport
    import Testing
    import Tracing

    @testable import RedisDCTestSupport

    extension EngineTests {
        @Suite("Instrumentation of the engine", .serialized)
        struct InstrumentationTests {
            @Test("grants, waits, holds and losses are counted, timed and traced without the names of resources")
            func counts() async throws {
                let (metrics, tracer) = (TestMetrics(), InMemoryTracer())
                var configuration = longTTL
                configuration.instruments.metrics = metrics
                configuration.instruments.tracer = tracer
                try await withServer { _, redis, other in
                    try await withCoordinator(redis: redis, configuration: configuration) { coordinator in
                        let mutex = try coordinator.mutex("name-SECRET")
                        for _ in 0..<3 { try await mutex.withLock { _ in } }
                        #expect(try metrics.expectCounter("redisdc_grants").totalValue == 3)
                        #expect(try metrics.expectTimer("redisdc_wait_duration").values.count == 3)
                        #expect(try metrics.expectTimer("redisdc_hold_duration").values.count == 3)
                        let semaphore = try coordinator.semaphore("other-SECRET", permits: 0)
                        #expect(try await semaphore.tryWait() == false)
                        #expect(
                            await errorOf { try await semaphore.wait(timeout: .milliseconds(1)) }?.code == .timedOut)
                        // A refused or timed out wait is not a grant.
                        #expect(try metrics.expectCounter("redisdc_grants").totalValue == 3)

                        let lease = try await mutex.lock()
                        _ = try await other.send("FLUSHALL")
                        try await until("the loss is noticed") { !lease.isHeld }
                        try await until("the losses are counted") {
                            try metrics.expectCounter("redisdc_sessions_lost").totalValue == 1
                                && metrics.expectCounter("redisdc_leases_lost").totalValue == 1
                        }
                    }
                }
                let spans = tracer.finishedSpans
                #expect(spans.count { $0.operationName == "redisdc hold" } == 3)
                #expect(spans.count { $0.operationName == "redisdc wait" } == 6)
                var texts = metrics.counters.map { "\($0.label) \($0.dimensions)" }
                texts += metrics.timers.map { "\($0.label) \($0.dimensions)" }
                for span in spans {
                    // The attributes are no sequence.
                    // swift-format-ignore: ReplaceForEachWithForLoop
                    span.attributes.forEach { texts.append("\($0)=\($1)") }
                }
                #expect(!texts.contains { $0.contains("SECRET") })
            }
        }
    }
#endif
