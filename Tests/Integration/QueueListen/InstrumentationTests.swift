#if MetricsSupport && TracingSupport
    import Hiredis
    import InMemoryTracing
    import Metrics
    import MetricsTestKit
    import QueueListen
    import Synchronization
    import TestSupport
    import Testing
    import Tracing
    import CoordinationBase

    @testable import QueueListenTestSupport

    extension QueueListenTests {
        @Suite("Metrics and traces", .serialized)
        struct InstrumentationTests {
            @Test("sends, receipts, deliveries, waits and losses are counted, timed and traced without names")
            func counts() async throws {
                let (metrics, tracer) = (TestMetrics(), InMemoryTracer())
                var configuration = PostOfficeConfiguration()
                configuration.instruments.metrics = metrics
                configuration.instruments.tracer = tracer
                configuration.limits.maxMessages = 3
                try await withServer { _, redis, _ in
                    try await withPostOffice(redis: redis, configuration: configuration) { office in
                        let mailbox = try office.mailbox("name-SECRET")
                        try await office.send(
                            [Message(text: "1"), Message(text: "2")], to: ["name-SECRET", "other-SECRET"])
                        try await office.send("text-SECRET", to: "name-SECRET")
                        let full = await errorOf { try await office.send("text-SECRET", to: "name-SECRET") }
                        #expect(full?.code == .mailboxFull)
                        #expect(try metrics.expectCounter("queuelisten_sends").totalValue == 3)
                        #expect(try metrics.expectCounter("queuelisten_receipts").totalValue == 2)
                        #expect(try metrics.expectTimer("queuelisten_send_duration").values.count == 2)

                        let delivery = try await mailbox.listen()
                        #expect(try metrics.expectCounter("queuelisten_deliveries").totalValue == 3)
                        let waiting = Task { try await mailbox.listen(after: delivery.cursor) }
                        try await until("the listener is counted") {
                            try metrics.expectGauge("queuelisten_listeners").lastValue == 1
                        }
                        try await mailbox.delete()
                        #expect(try await waiting.value.messages.isEmpty)
                        #expect(try metrics.expectCounter("queuelisten_gaps").totalValue == 1)
                        #expect(try metrics.expectGauge("queuelisten_listeners").lastValue == 0)
                        #expect(try metrics.expectTimer("queuelisten_listen_duration").values.count == 2)
                    }
                }
                let spans = tracer.finishedSpans
                #expect(spans.count { $0.operationName == "queuelisten send" } == 3)
                #expect(spans.count { $0.operationName == "queuelisten listen" } == 2)
                var texts = metrics.counters.map { "\($0.label) \($0.dimensions)" }
                texts += metrics.timers.map { "\($0.label) \($0.dimensions)" }
                for span in spans {
                    // The attributes are no sequence.
                    // swift-format-ignore: ReplaceForEachWithForLoop
                    span.attributes.forEach { texts.append("\($0)=\($1)") }
                }
                #expect(texts.contains { $0.contains("mailboxFull") })
                #expect(!texts.contains { $0.contains("SECRET") })
            }

            /// Configurations with eight partitions that take sends over after 100 ms, with and
            /// without metrics.
            private static func split() -> (TestMetrics, watched: PostOfficeConfiguration, PostOfficeConfiguration) {
                let metrics = TestMetrics()
                var silent = PostOfficeConfiguration()
                silent.partitions = 8
                silent.takeOverAfter = .milliseconds(100)
                var watched = silent
                watched.instruments.metrics = metrics
                return (metrics, watched, silent)
            }

            @Test("a cross-partition send that is finished for another process is counted")
            func takenOver() async throws {
                let (metrics, configuration, silent) = Self.split()
                try await withServer { _, redis, other in
                    let names = ["alice", "bob", "carol", "dave", "eve"]
                    let dead = InterposedRedis(
                        redis,
                        after: { keys in
                            if keys.contains(where: { $0.contains(":split:") }) {
                                throw RedisError(.clientStopped, "dead")
                            }
                        })
                    let sender = try PostOffice(redis: dead, configuration: silent)
                    #expect(await errorOf { try await sender.send([Message(text: "a")], to: names) } != nil)
                    try await withPostOffice(redis: other, configuration: configuration) { _ in
                        try await until("the send is taken over") {
                            try metrics.expectCounter("queuelisten_taken_over").totalValue == 1
                        }
                    }
                }
            }

            @Test("a cross-partition send that is unfinished for 29 days is given up, and counted once")
            func givenUp() async throws {
                let (metrics, configuration, silent) = Self.split()
                try await withServer { _, redis, other in
                    let names = ["alice", "bob", "carol", "dave", "eve"]
                    let isBegun = Atomic(false)
                    let parts = Atomic(0)
                    // Dies when one part is delivered.
                    let dying = InterposedRedis(
                        redis,
                        before: { _ in
                            if isBegun.load(ordering: .relaxed), parts.add(1, ordering: .relaxed).newValue > 1 {
                                throw RedisError(.clientStopped, "dead")
                            }
                        },
                        after: { keys in
                            if keys.contains(where: { $0.contains(":split:") }) {
                                isBegun.store(true, ordering: .relaxed)
                            }
                        })
                    let sender = try PostOffice(redis: dying, configuration: silent)
                    #expect(await errorOf { try await sender.send([Message(text: "a")], to: names, id: "x") } != nil)

                    let home = Namespace("default", partitions: 8).partition(of: "x")
                    let key = RedisArgument.string("ql:{default:\(home)}:split:x")
                    let day = 86_400_000
                    let left = try #require(try await other.send("PTTL", key).integer)
                    #expect((28 * day...29 * day).contains(left))
                    // The part is remembered for longer than the send: it cannot be delivered a second time.
                    let sent = try await other.send("KEYS", "ql:*:sent:id:x").array?.compactMap(\.string) ?? []
                    #expect(sent.count == 1)
                    for part in sent {
                        let left = try await other.send("PTTL", .string(part)).integer ?? 0
                        #expect((29 * day...30 * day).contains(left))
                    }
                    // Lets 29 days pass.
                    _ = try await other.send("PEXPIRE", key, 0)

                    try await withPostOffice(redis: redis, configuration: configuration) { office in
                        try await withPostOffice(redis: other, configuration: configuration) { _ in
                            let splits = RedisArgument.string("ql:{default:\(home)}:splits")
                            try await until("the send is given up") {
                                try await other.send("ZCARD", splits).integer == 0
                            }
                            try await until("the send is counted") {
                                try metrics.expectCounter("queuelisten_given_up").totalValue == 1
                            }
                        }
                        var got = 0
                        for name in names { got += try await office.mailbox(name).count }
                        #expect((1..<names.count).contains(got))
                    }
                    // Both post offices have ended.
                    #expect(try metrics.expectCounter("queuelisten_given_up").totalValue == 1)
                    #expect(try metrics.expectCounter("queuelisten_taken_over").totalValue == 0)
                }
            }
        }
    }
#endif
